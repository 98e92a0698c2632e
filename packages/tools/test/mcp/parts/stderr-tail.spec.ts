// What is kept of the standard error of a server.
import { describe, expect, it } from 'vitest'
import { keepStderrTail } from '../../../src/mcp/server-process.ts'

/** What is kept of these chunks. */
function kept(...chunks: readonly string[]): string {
  const tail = keepStderrTail()
  for (const chunk of chunks) tail.write(Buffer.from(chunk))
  return tail.text()
}

describe('the end of what a server wrote to its standard error', () => {
  it('given nothing, then it is empty; given lines, then they are kept without the space around them', () => {
    expect(kept()).toBe('')
    expect(kept(' \n', ' one\n', 'two \n\n')).toBe('one\ntwo')
  })

  it('given a chunk that is longer than 8 kB, then its last lines are kept, and none that has lost its beginning', () => {
    expect(kept(`${'x'.repeat(10_000)}\none\ntwo`)).toBe('one\ntwo')
    expect(kept(`${'x'.repeat(10_000)}\none\ntwo`, '')).toBe('one\ntwo')
    expect(kept('before', `${'x'.repeat(10_000)}\none\n`, 'two')).toBe('one\ntwo')
  })

  it('given chunks that are longer together, then the same', () => {
    expect(kept('x'.repeat(5_000), `${'x'.repeat(5_000)}\none\ntwo`)).toBe('one\ntwo')
    expect(kept(`${'x'.repeat(5_000)}\none\n`, 'y'.repeat(3_186), '\n', 'two')).toBe(
      `${'y'.repeat(1_496)}\ntwo`,
    )
  })

  it('given just 8 kB, then nothing is lost but what is before the last 1500 characters', () => {
    const shown = kept(`${'x'.repeat(8_188)}\nend`)
    expect(shown).toBe(`${'x'.repeat(1_496)}\nend`)
    expect(kept(`${'x'.repeat(8_189)}\nend`)).toBe('end')
    expect(kept('x', `${'x'.repeat(8_188)}\nend`)).toBe('end')
  })

  it('given a chunk, when its bytes are used again, then what is kept stays the same', () => {
    const tail = keepStderrTail()
    const chunk = Buffer.from('kept')
    tail.write(chunk)
    chunk.fill('x')
    expect(tail.text()).toBe('kept')
  })
})
