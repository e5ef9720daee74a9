// npm run build: dtflab.js from src/. Its first line names the sources, so that a test without Node sees whether it is fresh.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const names = readdirSync(`${here}src`, { recursive: true }).filter((name) => /\.(ts|css)$/.test(name)).sort();
const hash = createHash("sha256");
for (const name of [...names.map((name) => `src/${name}`), "package-lock.json"]) hash.update(readFileSync(here + name));

await build({
  absWorkingDir: here,
  entryPoints: ["src/main.ts"],
  outfile: process.argv[2] ?? "dtflab.js",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  loader: { ".css": "text" },
  legalComments: "none",
  banner: { js: `// Built by npm run build from sources ${hash.digest("hex").slice(0, 16)}; edit those.` },
});
