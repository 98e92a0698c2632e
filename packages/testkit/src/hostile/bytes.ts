/** Bytes from outside, as a file or as the body of a response. */
export interface HostileBytes {
  /** The fault, in a few words; unique. */
  readonly name: string
  readonly bytes: Uint8Array
}

/** A body as it arrives: its bytes, in the pieces that the network cut them into. */
export interface HostileStream {
  readonly name: string
  readonly chunks: readonly Uint8Array[]
}

const files: Readonly<Record<string, string | readonly number[]>> = {
  nothing: '',
  'one newline': '\n',
  'only white space': ' \t\r\n \n',
  'one line of garbage': 'garbage',
  'garbage after an object': '{} garbage\n',
  'an object that is cut': '{"runId":"',
  'a value that is not an object': 'null\n1\n"text"\n[]\ntrue\n',
  'an empty object': '{}\n',
  'the prototype as a field':
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}\n',
  'a field twice': '{"seq":1,"seq":2}\n',
  'numbers beyond all ranges': '{"at":1e999,"seq":-1,"epoch":9007199254740993,"turn":0.5,"v":-0}\n',
  'a date beyond all dates': '{"at":8640000000000001}\n',
  'lone surrogates': '{"text":"\\ud800","name":"\\udc00"}\n',
  'escapes of NUL': '{"runId":"a\\u0000b"}\n',
  'objects on one line': '{}{}{}\n',
  'lines that end in CRLF': '{}\r\n{}\r\n',
  'lines that end in CR': '{}\r{}\r',
  'no newline at the end': '{}\n{}',
  'a line of a comment': '// comment\n{}\n',
  'an array in place of lines': '[{},{}]\n',
  'very deep arrays': '['.repeat(50_000),
  'very deep objects': '{"a":'.repeat(50_000),
  'one very long line': `{"text":"${'a'.repeat(200_000)}"}`,
  'very many empty lines': '\n'.repeat(50_000),
  'a page of HTML': '<!doctype html><html><body>502 Bad Gateway</body></html>\n',
  'byte order mark of UTF-8': [0xef, 0xbb, 0xbf, 0x7b, 0x7d, 0x0a],
  'UTF-16': [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00, 0x0a, 0x00],
  'not UTF-8': [0x7b, 0x22, 0xff, 0xc0, 0x80, 0x22, 0x7d, 0x0a],
  'a character of UTF-8 that is cut': [0x22, 0xe2, 0x82],
  'surrogates in UTF-8': [0x22, 0xed, 0xa0, 0x80, 0x22, 0x0a],
  'bytes of NUL': [0, 0, 0, 0, 0, 0, 0, 0],
  gzip: [0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0x03],
  'the head of a SQLite file': [...encodeLatin1('SQLite format 3'), 0, 0x10, 0],
  'a picture': [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
}

const eventStreams: Readonly<Record<string, readonly string[]>> = {
  'ends without a byte': [],
  'ends after an empty piece': [''],
  'ends within an event': ['data: {"type":"mess'],
  'ends before the blank line': ['data: {"type":"message_start"}\n'],
  'ends without the event of the end': ['event: ping\ndata: {}\n\n'],
  'data that is not JSON': ['data: not JSON\n\n'],
  'data that is not an object': ['data: null\n\n', 'data: 1\n\n', 'data: "text"\n\n', 'data: []\n\n'],
  'an object without fields': ['data: {}\n\n'],
  'an event of an unknown type': ['event: unheard_of\ndata: {"type":"unheard_of"}\n\n'],
  'the prototype as a field': ['data: {"__proto__":{"type":"message_stop"},"type":"constructor"}\n\n'],
  'only comments': [': keep-alive\n\n'.repeat(100)],
  'a page of HTML': ['<!doctype html><html><body>502 Bad Gateway</body></html>'],
  'a plain JSON error': ['{"error":{"message":"quota","type":"insufficient_quota"}}'],
  'an error as an event': ['event: error\ndata: {"error":{"message":"overloaded"}}\n\n'],
  'lines that end in CR': ['data: {"type":"ping"}\r\rdata: {"type":"ping"}\r\r'],
  'data over many lines': ['data: {"type":\ndata: "ping"}\n\n'],
  'a byte order mark first': ['\u00ef\u00bb\u00bfdata: {"type":"ping"}\n\n'],
  'NUL within an event': ['data: {"type":"pi\u0000ng"}\n\n'],
  'a line without an end': [`data: ${'a'.repeat(200_000)}`],
  'the end, and more after it': ['data: [DONE]\n\ndata: {"choices":[{"delta":{"content":"more"}}]}\n\n'],
  'lines of JSON that are cut': ['{"message":{"content":"hi"},"done":fal'],
  'lines of JSON without a message': ['{"done":true}\n'],
  'lines that are not JSON': ['\n\n<html>\n'],
}

/** Files and bodies that are not what a reader expects: empty, cut, of another kind, too deep, too long. */
export const hostileFiles: readonly HostileBytes[] = Object.entries(files).map(([name, content]) => ({
  name,
  bytes: typeof content === 'string' ? encodeLatin1(content) : Uint8Array.from(content),
}))

/** Bodies of a model's reply, as server-sent events and as lines of JSON, that are not replies. */
export const hostileStreams: readonly HostileStream[] = Object.entries(eventStreams).map(
  ([name, chunks]) => ({ name, chunks: chunks.map(encodeLatin1) }),
)

/**
 * Returns the same bytes in other pieces, since the network may cut anywhere: one byte per piece, cut within
 * characters, with empty pieces between, and whole. A reader must read the same in each case.
 */
export function cutOtherwise(bytes: Uint8Array): readonly HostileStream[] {
  const pieces = (size: number): readonly Uint8Array[] =>
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.slice(index * size, (index + 1) * size),
    )
  return [
    { name: 'whole', chunks: [bytes] },
    { name: 'a byte a piece', chunks: pieces(1) },
    { name: 'three bytes a piece', chunks: pieces(3) },
    { name: 'seven bytes a piece', chunks: pieces(7) },
    { name: 'empty pieces between', chunks: pieces(5).flatMap((piece) => [new Uint8Array(), piece]) },
  ]
}

function encodeLatin1(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}
