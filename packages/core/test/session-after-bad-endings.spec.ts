// What users of agent runtimes have lost of their conversations; see cut-replies-and-stops.spec.ts. A session that lives beside the run
// is written when the run ends well. Here the run's events are the session: whatever a run ends in, the next one, in a
// process with nothing but the ledger, shows the model all of it.
import { describe, expect, it } from 'vitest'
import { memoryLedger, type LedgerConflictError } from '@tallystick/core'
import {
  manualClock,
  mortalLedger,
  testTool,
  type ScriptedReply,
  type ScriptedStep,
  type TestTool,
} from '@tallystick/testkit'
import { begin, converse, newProcess, nextRequest, readable } from './conversation.ts'
import { ofType, type StageOptions } from './stage.ts'

const reply: ScriptedReply = { text: 'Booking.', toolCalls: [{ name: 'book', input: {} }] }

/** Books until two calls have been answered, then says so. */
const twice: ScriptedStep = ({ messages }) =>
  messages.filter(({ role }) => role === 'tool').length < 2 ? reply : { text: 'Both are booked.' }

/** A tool that books; `log` is the world outside, which all processes share. */
const booking = (log: string[]): TestTool =>
  testTool({ name: 'book', effect: 'write', run: () => `seat ${log.push('booked')}` })

/** Of which kind the conflict is that a run meets; `undefined` where it meets none. */
const kindOfRefusal = async (result: Promise<unknown>): Promise<string | undefined> =>
  await result.then(
    () => undefined,
    (error: LedgerConflictError) => error.kind,
  )

describe('a session whose run', () => {
  const endings: readonly (StageOptions & { readonly what: string; readonly ends: object })[] = [
    {
      what: 'hits its turn limit',
      ...{ steps: [reply, reply], limits: { maxTurns: 2, onLimit: 'stop' as const } },
      ends: { reason: 'turn_limit', toolCalls: 2 },
    },
    {
      what: 'fails for good at the next model call',
      ...{ steps: [reply, reply, { fail: 'authentication' as const }] },
      ends: { reason: 'model_failed', toolCalls: 2 },
    },
    {
      what: 'runs out of money',
      ...{ steps: [reply, { ...reply, usage: { inputTokens: 900, outputTokens: 90 } }] },
      ...{ limits: { maxTotalTokens: 1_000, onLimit: 'stop' as const } },
      ends: { reason: 'token_limit', toolCalls: 2 },
    },
  ]

  it.each(endings)(
    '$what after executed tools was empty: it has the input, the calls and the results',
    async ({ ends, what: _what, ...options }) => {
      const log: string[] = []
      const set = newProcess({ tools: [booking(log)], ...options })
      expect(await converse(set, 'Book two seats.')).toMatchObject(ends)
      expect(readable(await nextRequest(set))).toEqual([
        'user: Book two seats.',
        ...['assistant: Booking.', 'asks book', 'book success: seat 1'],
        ...['assistant: Booking.', 'asks book', 'book success: seat 2'],
        'user: And now?',
      ])
      expect(log).toHaveLength(2)
    },
  )

  it('is aborted after executed tools had the user message alone: it has all of it, whenever that is', async () => {
    const seen = new Set<string>()
    for (let at = 1, reached = true; reached; at++) {
      const log: string[] = []
      const set = newProcess({ tools: [booking(log)], steps: Array.from({ length: 3 }, () => twice) })
      const run = begin(set, 'Book two seats.')
      reached = false
      run.events$.subscribe(({ seq, type }) => {
        if (seq !== at || type === 'run_finished') return
        reached = true
        void run.cancel('enough')
      })
      const { reason, text } = await set.waitUntilSettled(run.result)
      const lines = readable(await nextRequest(set))
      expect([lines[0], lines.at(-1)]).toEqual(['user: Book two seats.', 'user: And now?'])
      const answers = lines.filter((line) => line.startsWith('book '))
      expect(answers).toHaveLength(lines.filter((line) => line === 'asks book').length)
      // What was done is known, after the message that asked for it.
      expect(answers.filter((line) => line.includes('seat'))).toEqual(
        log.map((_, index) => `book success: seat ${index + 1}`),
      )
      expect(lines).toEqual(expect.arrayContaining(text === '' ? [] : [`assistant: ${text}`]))
      seen.add([reason, ...answers].join(', '))
    }
    const [one, two] = ['book success: seat 1', 'book success: seat 2']
    const stopped = 'book cancelled: The run was cancelled before this call was complete.'
    expect([...seen]).toEqual([
      ...['cancelled', `cancelled, ${stopped}`, `cancelled, ${one}`, `cancelled, ${one}, ${stopped}`],
      ...[`cancelled, ${one}, ${two}`, `answered, ${one}, ${two}`],
    ])
  })

  it('dies with its process was lost, or continued twice: it continues where it was, and the next run has all of it', async () => {
    const seen = new Set<string>()
    for (let append = 1, died = true; died; append++) {
      for (const stored of [true, false]) {
        const log: string[] = []
        const store = memoryLedger()
        const same = { clock: manualClock(), steps: Array.from({ length: 3 }, () => twice) }
        const ledger = mortalLedger(store, { append, stored })
        const dying = newProcess({ ...same, ledger, tools: [booking(log)] })
        const run = begin(dying, 'Book two seats.')
        await dying.waitUntilSettled(Promise.allSettled([run.result]))
        died = ledger.dead
        if ((await store.head(run.id)) === undefined) {
          seen.add(`nothing was said; booked ${log.length}`)
          continue
        }
        const next = newProcess({ ...same, ledger: store, tools: [booking(log)] })
        const [finished] = ofType(await next.eventsOf(run), 'run_finished')
        // No run writes a second history beside the one that is not at its end.
        const beside = finished ? 'session' : await kindOfRefusal(converse(next))
        expect(beside).toBe('session')
        expect(await next.waitUntilSettled(next.runtime.resume(run.id).result)).toMatchObject({
          reason: 'answered',
        })
        const lines = readable(await nextRequest(next))
        expect(lines.filter((line) => !line.startsWith('book '))).toEqual([
          ...[
            'user: Book two seats.',
            'assistant: Booking.',
            'asks book',
            'assistant: Booking.',
            'asks book',
          ],
          ...['assistant: Both are booked.', 'user: And now?'],
        ])
        const outcomes = lines.flatMap((line) => /^book (\w+)/.exec(line)?.[1] ?? [])
        seen.add(`${outcomes.join(', ')}; booked ${log.length}`)
      }
    }
    // Nothing is booked a third time. If no record says how a call ended, the model reads just that.
    expect([...seen].toSorted()).toEqual([
      ...['interrupted, success; booked 1', 'interrupted, success; booked 2', 'nothing was said; booked 0'],
      ...['success, interrupted; booked 1', 'success, interrupted; booked 2', 'success, success; booked 2'],
    ])
  })

  it('ends badly kept what the last good one had: it keeps every run, however many end badly one after the other', async () => {
    const log: string[] = []
    const tools = [booking(log)]
    const first = newProcess({ tools, steps: [reply], limits: { maxTurns: 1, onLimit: 'stop' } })
    expect(await converse(first, 'A seat.')).toMatchObject({ reason: 'turn_limit' })
    const shared = { ledger: first.ledger, clock: first.clock, tools }
    const second = newProcess({ ...shared, steps: [reply, { fail: 'invalid_request' }] })
    expect(await converse(second, 'One more.')).toMatchObject({ reason: 'model_failed' })
    const third = newProcess({ ...shared, steps: [{ text: 'You have two', hang: true }] })
    const run = begin(third, 'How many?')
    run.textUpdates$.subscribe(({ text }) => void (text.includes('two') && run.cancel()))
    expect(await third.waitUntilSettled(run.result)).toMatchObject({
      reason: 'cancelled',
      text: 'You have two',
    })
    const fourth = newProcess({ ...shared, steps: [{ ...reply, stopReason: 'max_tokens' }] })
    expect(await converse(fourth, 'A third one.')).toMatchObject({ reason: 'output_truncated' })
    expect(readable(await nextRequest(fourth))).toEqual([
      ...['user: A seat.', 'assistant: Booking.', 'asks book', 'book success: seat 1'],
      ...['user: One more.', 'assistant: Booking.', 'asks book', 'book success: seat 2'],
      ...['user: How many?', 'assistant: You have two'],
      ...['user: A third one.', 'assistant: Booking.', 'asks book'],
      'book skipped: The reply that asked for this call was not complete. Nothing was run.',
      'user: And now?',
    ])
    expect(log).toHaveLength(2)
  })
})
