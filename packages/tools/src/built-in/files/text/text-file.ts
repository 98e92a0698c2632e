import type { FileHandle } from 'node:fs/promises'
import type { Stats } from 'node:fs'

/** A file as text, or why it has no text to show: `size` is in bytes, as far as it is known. */
export type FileText =
  | { readonly kind: 'text'; readonly text: string; readonly size: number; readonly stats: Stats }
  | { readonly kind: 'binary' | 'too_large'; readonly size: number }

const pieceBytes = 256 * 1024

/**
 * The whole text of an open file of at most `maxBytes`. A file with NUL characters, or whose bytes are not UTF-8, is
 * binary. A mark of the byte order at the start stays part of the text.
 */
export async function textOfFile(file: FileHandle, maxBytes: number, signal: AbortSignal): Promise<FileText> {
  const stats = await file.stat()
  if (stats.size > maxBytes) return { kind: 'too_large', size: stats.size }
  const pieces: Buffer[] = []
  let size = 0
  // Its size is no promise: a file may grow, and some files of the system say that they are empty.
  for (;;) {
    signal.throwIfAborted()
    const piece = Buffer.allocUnsafe(pieceBytes)
    const { bytesRead } = await file.read(piece, 0, piece.length, size)
    if (bytesRead === 0) break
    const read = piece.subarray(0, bytesRead)
    // Binary files show it early, and need not be read to their end.
    if (read.includes(0)) return { kind: 'binary', size: Math.max(stats.size, size + bytesRead) }
    pieces.push(read)
    size += bytesRead
    if (size === stats.size) break
    if (size > maxBytes) return { kind: 'too_large', size }
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(pieces))
    return { kind: 'text', text, size, stats }
  } catch {
    return { kind: 'binary', size }
  }
}

/** The lines of a text, without their ends; the end of the last line begins no further one. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
}

/** Whether a text has line breaks, each of them CR LF. */
export function hasWindowsLines(text: string): boolean {
  return text.includes('\n') && !/(?<!\r)\n/.test(text)
}
