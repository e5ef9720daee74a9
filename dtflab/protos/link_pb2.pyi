from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class OpenLinkRequest(_message.Message):
    __slots__ = ("version", "address", "token")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    version: int
    address: str
    token: bytes
    def __init__(self, version: _Optional[int] = ..., address: _Optional[str] = ..., token: _Optional[bytes] = ...) -> None: ...

class OpenLinkResponse(_message.Message):
    __slots__ = ("port", "name", "key", "welcome")
    PORT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    port: int
    name: str
    key: bytes
    welcome: bytes
    def __init__(self, port: _Optional[int] = ..., name: _Optional[str] = ..., key: _Optional[bytes] = ..., welcome: _Optional[bytes] = ...) -> None: ...

class ConfirmLinkRequest(_message.Message):
    __slots__ = ("token", "address")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    token: bytes
    address: str
    def __init__(self, token: _Optional[bytes] = ..., address: _Optional[str] = ...) -> None: ...

class LimitedSessionRequest(_message.Message):
    __slots__ = ("session", "folder")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    FOLDER_FIELD_NUMBER: _ClassVar[int]
    session: bytes
    folder: str
    def __init__(self, session: _Optional[bytes] = ..., folder: _Optional[str] = ...) -> None: ...
