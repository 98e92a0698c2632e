import * as z from 'zod'
import { describe, expect, it } from 'vitest'
import type { AgentOptions, RunResult, RuntimeEvent } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { checkedRun, ofType, stage } from './stage.ts'

const never = (): Promise<never> => new Promise(() => {})
const look = { toolCalls: [{ name: 'look', input: {} }] } as const
const limits = { maxDurationMs: 4_000, graceMs: 100 }

interface Timed {
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
  /** Milliseconds from the first event to the last. */
  readonly tookMs: number
}

async function timed(
  options: Partial<AgentOptions> & { readonly steps?: readonly ScriptedStep[] },
): Promise<Timed> {
  const set = stage({ limits, tools: [testTool({ name: 'look' })], ...options })
  const result = await set.play()
  const events = checkedRun(await set.eventsOf(result.runId))
  return { result, events, tookMs: (events.at(-1)?.at ?? 0) - (events[0]?.at ?? 0) }
}

describe('the limit on time', () => {
  it('keeps a part for the call that writes the answer', async () => {
    const { result, events, tookMs } = await timed({
      steps: [{ text: 'Hm', hang: true }, { text: 'Enough.' }],
    })
    expect(result).toMatchObject({ reason: 'time_limit', text: 'Enough.' })
    expect(ofType(events, 'limit_reached')).toMatchObject([
      { limit: 'maxDurationMs', used: 3_000, held: 1_000 },
    ])
    expect(tookMs).toBeLessThanOrEqual(4_000)
  })

  it('ends a finalizing call that hangs, and keeps what it wrote', async () => {
    const { result, tookMs } = await timed({
      steps: [
        { text: 'Hm', hang: true },
        { text: 'So far', hang: true },
      ],
    })
    expect(result).toMatchObject({ status: 'done', reason: 'time_limit', text: 'So far' })
    expect(tookMs).toBe(4_000)
  })

  it('ends a summary that hangs', async () => {
    const steps = [look, look, { text: 'Done.' }]
    const { result, events, tookMs } = await timed({
      steps,
      tools: [testTool({ name: 'look', run: () => 'x'.repeat(900) })],
      compaction: {
        ...{ maxContextTokens: 300, keepMessages: 1 },
        summarize: scriptedModel([{ text: 'So', hang: true }], 'summing'),
      },
    })
    expect(result.reason).toBe('time_limit')
    expect(ofType(events, 'context_compacted')).toHaveLength(1)
    expect(tookMs).toBeLessThanOrEqual(4_000)
  })

  it('ends the check of a schema that hangs', async () => {
    const output = z.object({ n: z.number() }).refine(never)
    const { result, tookMs } = await timed({ steps: [{ text: '{"n":1}' }], output } as never)
    expect(result).toMatchObject({ reason: 'time_limit', output: undefined })
    expect(tookMs).toBe(4_000)
  })

  it.each(['input', 'output', 'tool_output'] as const)('ends a guardrail on %s that hangs', async (on) => {
    const guardrails = [{ name: 'slow', on, timeoutMs: 3_600_000, check: never }]
    const { result, events, tookMs } = await timed({
      ...({ steps: [look, { text: 'secret' }, { text: 'Enough.' }], guardrails } as object),
    })
    expect(result.reason).toBe('time_limit')
    expect(tookMs).toBeLessThanOrEqual(4_000)
    // No reader is shown what no guardrail has passed.
    expect(result.text).not.toContain('secret')
    const withheld = on === 'input' ? [] : [{ guardrail: 'slow', on, action: 'replace' }]
    expect(ofType(events, 'guardrail_tripped')).toMatchObject(withheld)
  })

  it('ends the wait for another attempt', async () => {
    const { result, tookMs } = await timed({
      steps: [{ fail: 'overloaded', retryAfterMs: 90_000 }, { text: 'Enough.' }],
    })
    expect(result).toMatchObject({ reason: 'time_limit', text: 'Enough.' })
    expect(tookMs).toBe(3_000)
  })

  it('leaves no time to tools past the end of the run, whatever their grace', async () => {
    const deaf = testTool({ name: 'look', effect: 'write', run: never })
    const stubborn = {
      ...deaf,
      run: (call: never) => deaf.run({ ...(call as object), cancelled$: silent } as never),
    }
    const { result, events, tookMs } = await timed({
      ...{ steps: [look, { text: 'Never said.' }], tools: [stubborn] },
      limits: { maxDurationMs: 4_000, graceMs: 60_000 },
    })
    expect(result.reason).toBe('time_limit')
    expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'timed_out' }])
    expect(tookMs).toBe(4_000)
  })
})

const silent = { subscribe: () => ({ unsubscribe: () => {} }) }

describe('a limit that is raised while the finalizing call is unfinished', () => {
  it('lets the run continue with ordinary calls, here and after a resume', async () => {
    const steps: ScriptedStep[] = [
      look,
      { text: 'So', fail: 'overloaded', retryAfterMs: 5_000 },
      look,
      { text: 'Done.' },
    ]
    const set = stage({ steps, tools: [testTool({ name: 'look' })], limits: { maxTurns: 2 } })
    const run = set.start()
    let raised: Promise<unknown> | undefined
    run.events$.subscribe(({ type }) => {
      if (type === 'model_stream_failed') raised = run.raiseLimit('maxTurns', 9, { by: 'ada' })
    })
    const result = await set.waitUntilSettled(run.result)
    expect(await raised).toEqual({ accepted: true })
    expect(result).toMatchObject({ reason: 'answered', text: 'Done.' })
    expect(set.model.requests.map(({ toolChoice }) => toolChoice.type)).toEqual([
      'auto',
      'none',
      'auto',
      'auto',
    ])
    checkedRun(await set.eventsOf(run))
  })

  it('takes a finalizing call that ends all the same for the answer', async () => {
    let finish = (): void => {}
    const until = new Promise<void>((resolve) => (finish = resolve))
    const steps: ScriptedStep[] = [look, { text: 'That is it.', until }]
    const set = stage({ steps, tools: [testTool({ name: 'look' })], limits: { maxTurns: 2 } })
    const run = set.start()
    run.events$.subscribe((event) => {
      if (event.type === 'assistant_started' && event.turn === 2) {
        void run.raiseLimit('maxTurns', 9, { by: 'ada' }).then(finish)
      }
    })
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'That is it.' })
    checkedRun(await set.eventsOf(run))
  })
})
