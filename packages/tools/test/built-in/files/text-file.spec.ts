// How a file becomes text: what is read of it, and when it is none.
import { writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { hasWindowsLines, linesOf, textOfFile } from '../../../src/built-in/files/text/text-file.ts'
import { sandbox } from './sandbox.ts'

const goesOn = new AbortController().signal
/** More than is read at once. */
const long = 'a'.repeat(300_000)

/** Reads a file that holds `content`; `says` is the size that the system says it has. */
async function textOf(
  content: string,
  {
    maxBytes = 1_000_000,
    says,
    signal = goesOn,
  }: { maxBytes?: number; says?: number; signal?: AbortSignal } = {},
) {
  const box = sandbox()
  onTestFinished(() => box.remove())
  const path = join(box.root, 'file')
  writeFileSync(path, content)
  const file = await open(path)
  onTestFinished(async () => await file.close())
  const stat = async () => Object.assign(await file.stat(), says !== undefined && { size: says })
  const opened = { stat, read: file.read.bind(file) } as unknown as FileHandle
  const { stats: _, ...read } = { stats: undefined, ...(await textOfFile(opened, maxBytes, signal)) }
  return read
}

describe('a file', () => {
  it('of as many bytes as may be read is read, and of one more is too large', async () => {
    expect(await textOf('a', { maxBytes: 1 })).toEqual({ kind: 'text', text: 'a', size: 1 })
    expect(await textOf('abcd', { maxBytes: 4 })).toEqual({ kind: 'text', text: 'abcd', size: 4 })
    expect(await textOf('abcde', { maxBytes: 4 })).toEqual({ kind: 'too_large', size: 5 })
  })

  it('is read to its end in several pieces', async () => {
    expect(await textOf(`${long}é`)).toEqual({ kind: 'text', text: `${long}é`, size: 300_002 })
  })

  it('that has more or fewer bytes than the system says is read to its end, as far as may be', async () => {
    for (const says of [0, 1, 99])
      expect(await textOf('abcd', { maxBytes: 100, says })).toEqual({ kind: 'text', text: 'abcd', size: 4 })
    expect(await textOf('abcd', { maxBytes: 4, says: 0 })).toMatchObject({ kind: 'text' })
    expect(await textOf('abcde', { maxBytes: 4, says: 0 })).toEqual({ kind: 'too_large', size: 5 })
  })

  it('with a NUL is binary, of the size that is known then', async () => {
    expect(await textOf(`\0${long}`)).toEqual({ kind: 'binary', size: 300_001 })
    expect(await textOf(`${long}\0`, { says: 0 })).toEqual({ kind: 'binary', size: 300_001 })
  })

  it('is not read once the call has ended', async () => {
    await expect(textOf('abc', { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
  })
})

describe('the lines of a text', () => {
  it('are without their ends, and the last one begins no further one', () => {
    expect(linesOf('')).toEqual([])
    expect(linesOf('\n')).toEqual([''])
    expect(linesOf('one\r\ntwo\n\nthree')).toEqual(['one', 'two', '', 'three'])
  })

  it('are those of Windows where each of them ends with CR LF', () => {
    const given = ['one\r\ntwo\r\n', 'one\r\ntwo', 'one', '', 'a\nb\r\n', 'a\r\nb\n', 'a\r\n\nb\r\n', '\n']
    expect(given.map(hasWindowsLines)).toEqual([true, true, false, false, false, false, false, false])
  })
})
