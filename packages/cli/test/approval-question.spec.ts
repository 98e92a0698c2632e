import type { PendingApproval } from '@tallystick/core'
import { sampleCallId, sampleRunId } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { askForApproval } from '../src/drive/interactive-run.ts'
import type { Output } from '../src/terminal/output.ts'

const runId = sampleRunId(1)
const toolCallId = sampleCallId(runId)

/** Asks a person who gives these answers, at a screen of this size, and tells what they saw. */
async function asked(
  { rows = 24, columns = 80, ...approval }: Partial<PendingApproval> & { rows?: number; columns?: number },
  answers: readonly (string | undefined)[],
): Promise<{ readonly choice: unknown; readonly seen: readonly string[] }> {
  const seen: string[] = []
  const left = [...answers]
  const person: Pick<Output, 'size' | 'write' | 'reset' | 'ask'> = {
    size: () => ({ rows, columns }),
    write: (text) => void seen.push(text),
    reset: () => void seen.push('(reset)'),
    ask: (question) => {
      seen.push(question)
      if (left.length === 0) throw new Error(`no answer to ${question}`)
      return Promise.resolve(left.shift())
    },
  }
  const waiting = { runId, toolCallId, name: 'pay', input: { usd: 5 }, ...approval } as PendingApproval
  const choice = await askForApproval(person as Output, waiting)
  expect(left).toEqual([])
  return { choice, seen }
}

const question = 'Run pay with this input? [y]es, [a]lways, [n]o, [l]ater: '

describe('the question about a call that waits', () => {
  it('given a short call, when it is asked about, then all of it is shown before the question', async () => {
    const { choice, seen } = await asked({ reason: 'it is\nmoney' }, ['y'])
    expect(seen).toEqual([
      '(reset)',
      `Approval of pay\nCall: ${toolCallId}\nReason: it is money\nInput: {\n  "usd": 5\n}\n`,
      question,
    ])
    expect(choice).toEqual({ kind: 'approve', via: 'prompt' })
    const without = await asked({}, ['y'])
    expect(without.seen[1]).not.toContain('Reason')
  })

  it.each(['y', 'Y', 'yes', 'YES'])(
    'given the answer %s, when it is read, then the call is approved',
    async (answer) => {
      expect((await asked({}, [answer])).choice).toEqual({ kind: 'approve', via: 'prompt' })
    },
  )

  it.each(['l', 'L', 'later', undefined])(
    'given the answer %s, when it is read, then the call waits',
    async (answer) => {
      expect((await asked({}, [answer])).choice).toEqual({ kind: 'later' })
    },
  )

  it.each(['n', 'N', 'no'])(
    'given the answer %s, when it is read, then the person is asked why',
    async (answer) => {
      const { choice, seen } = await asked({}, [answer, 'too dear'])
      expect(choice).toEqual({ kind: 'deny', via: 'prompt', reason: 'too dear' })
      expect(seen.at(-1)).toBe('Why not? The model reads it: ')
      expect((await asked({}, [answer, ''])).choice).toEqual({
        ...{ kind: 'deny', via: 'prompt', reason: 'No reason was given.' },
      })
      expect((await asked({}, [answer, undefined])).choice).toEqual({ kind: 'later' })
    },
  )

  it('given any other answer, when it is read, then the question is asked again, and nothing is shown twice', async () => {
    const { choice, seen } = await asked({}, ['', 'yeah', 'ny', 'yn', 'lat', 'nope', 'y'])
    expect(choice).toEqual({ kind: 'approve', via: 'prompt' })
    expect(seen.filter((text) => text === question)).toHaveLength(7)
    expect(seen).toHaveLength(9)
  })

  it('given a call longer than the screen, when it is shown, then page by page, and no yes counts before its end', async () => {
    const input = { a: 1, b: 2, c: 3, d: 4, e: 5 }
    const { choice, seen } = await asked({ input, rows: 8 }, ['y', '', 'y'])
    // Two lines above the input, and seven of it.
    expect(seen.filter((text) => text.startsWith('--'))).toEqual([
      '-- 4 of 9 lines. Enter shows more, [n]o, [l]ater: ',
      '-- 8 of 9 lines. Enter shows more, [n]o, [l]ater: ',
    ])
    expect(seen.filter((text) => text.endsWith('\n')).map((page) => page.split('\n').length - 1)).toEqual([
      4, 4, 1,
    ])
    expect(choice).toEqual({ kind: 'approve', via: 'prompt' })
    expect((await asked({ input, rows: 8 }, ['l'])).choice).toEqual({ kind: 'later' })
    expect((await asked({ input, rows: 8 }, ['n', 'No.'])).choice).toMatchObject({
      kind: 'deny',
      reason: 'No.',
    })
    // A screen of no height still shows a line at a time.
    expect((await asked({ input: {}, rows: 2 }, ['', '', 'y'])).seen[1]).toBe('Approval of pay\n')
  })

  it.each(['a', 'A', 'always'])(
    'given the answer %s, when it is read, then the person is asked which later calls run, until it is clear',
    async (answer) => {
      const { choice, seen } = await asked({}, [answer, 'yes', 'session', 'session=0s', 'session=8h'])
      const standing = { for: 'session', expiresInMs: 8 * 3_600_000 }
      expect(choice).toEqual({ kind: 'approve', via: 'prompt', standing })
      const which = 'Which later calls, for how long? session=8h, equal_input=8h: '
      expect(seen.filter((text) => text === which)).toHaveLength(4)
      expect(seen.filter((text) => text.startsWith('It has to be'))).toHaveLength(3)
      const equal = await asked({}, [answer, ' equal_input=30m '])
      expect(equal.choice).toMatchObject({ standing: { for: 'equal_input', expiresInMs: 1_800_000 } })
      expect((await asked({}, [answer, undefined])).choice).toEqual({ kind: 'later' })
    },
  )

  it('given a call that several people approve, when it is asked about, then no later call is offered', async () => {
    const { choice, seen } = await asked({ approvers: [{ count: 2 }] }, ['a', 'y'])
    expect(seen.at(-1)).toBe('Run pay with this input? [y]es, [n]o, [l]ater: ')
    expect(choice).toEqual({ kind: 'approve', via: 'prompt' })
  })

  it('given a name longer than twenty-five columns, when it is asked about, then the question is cut, and the call is not', async () => {
    const name = 'p'.repeat(26)
    const { seen } = await asked({ name }, ['y'])
    expect(seen[1]).toContain(`Approval of ${name}\n`)
    expect(seen[2]).toBe(`Run ${'p'.repeat(24)}… with this input? [y]es, [a]lways, [n]o, [l]ater: `)
    const whole = await asked({ name: 'p'.repeat(25) }, ['y'])
    expect(whole.seen[2]).toContain(`Run ${'p'.repeat(25)} with`)
  })
})
