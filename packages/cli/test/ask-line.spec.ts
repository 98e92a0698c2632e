import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { askLine } from '../src/terminal/output.ts'

/** A terminal that a person types at, and what it was asked to do. */
function terminal() {
  const modes: boolean[] = []
  const input = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => void modes.push(isRaw),
  })
  const output = new PassThrough()
  let shown = ''
  output.on('data', (chunk: Buffer) => (shown += chunk.toString()))
  const ask = async (question: string, ...typed: readonly string[]): Promise<string | undefined> => {
    const isAsked = typed.length > 0 ? once(output, 'data') : undefined
    const answer = askLine(input, output, question)
    await isAsked
    for (const part of typed) input.write(part)
    return await answer
  }
  return { input, modes, shown: () => shown, ask }
}

describe('a question at the terminal', () => {
  it('given a line, when it is read, then without the spaces around it, after the question', async () => {
    const { ask, shown } = terminal()
    expect(await ask('Why? ', '  too dear \r')).toBe('too dear')
    expect(shown()).toContain('Why? ')
  })

  it('given lines that were typed before, when it is asked, then they are forgotten', async () => {
    const { ask, input } = terminal()
    input.write('y\ry\r')
    expect(await ask('Run? ', 'n\r')).toBe('n')
  })

  it('given several lines at once, when they are read, then only the first counts, now and for the next question', async () => {
    const { ask } = terminal()
    expect(await ask('One? ', 'a\rb\rc\r')).toBe('a')
    expect(await ask('Two? ', 'd\r')).toBe('d')
  })

  it.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ])('given %s, when it is typed, then there is no answer', async (_name, key) => {
    const { ask, modes } = terminal()
    expect(await ask('Why? ', 'half', '\u0015', key)).toBeUndefined()
    expect(modes.at(-1)).toBe(false)
  })

  it('given an input that has ended, when it is asked, then there is no answer, no question, and the terminal is as it was', async () => {
    const { ask, input, modes, shown } = terminal()
    input.end()
    expect(await ask('Why? ')).toBeUndefined()
    expect(shown()).toBe('')
    expect(modes).toEqual([true, false])
  })
})
