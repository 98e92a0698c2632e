import { Observable, of, throwError } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { RunResult, Tool } from '@tallystick/core'
import type { CallVerdict, ToolRun, ToolSignal, ToolResult } from '@tallystick/core/vocabulary'
import { testTool } from '@tallystick/testkit'
import { ofType, stage, type Stage, type StageOptions } from './stage.ts'

/** A tool in plain JavaScript: it may report anything. */
function toolOf(run: (run: ToolRun) => unknown, more: Partial<Tool> = {}): Tool {
  return { ...testTool({ name: 'tool', effect: 'write' }), run: run as Tool['run'], ...more }
}

const signals = (...list: readonly unknown[]): Observable<ToolSignal> => of(...(list as ToolSignal[]))
const success = { type: 'tool_ended', outcome: 'success', content: [{ type: 'text', text: 'It did.' }] }

interface Call {
  readonly result: ToolResult
  readonly run: RunResult
  readonly set: Stage
}

/** Lets the model call a tool once, and answer. */
async function callTool(tool: Tool, more: StageOptions = {}): Promise<Call> {
  const set = stage({
    steps: [{ toolCalls: [{ name: 'tool', input: {} }] }, { text: 'Done.' }],
    tools: [tool],
    ...more,
  })
  const run = await set.play()
  const results = ofType(await set.eventsOf(run.runId), 'tool_result')
  expect(results).toHaveLength(1)
  return { result: results[0]!, run, set }
}

function said({ content }: ToolResult): string {
  return content.map((part) => (part.type === 'text' ? part.text : part.type)).join(' ')
}

describe('a tool that keeps its contract', () => {
  it('may end at once, before it is even subscribed to', async () => {
    const { result, run } = await callTool(toolOf(() => signals(success)))
    expect([result.outcome, said(result), run.reason]).toEqual(['success', 'It did.', 'answered'])
  })

  it('may tell how far it is, as often as it likes', async () => {
    const steps = [1, 2, 3].map((data) => ({ type: 'tool_progressed', data }))
    const { result, set, run } = await callTool(toolOf(() => signals(...steps, success)))
    expect(result.outcome).toBe('success')
    expect(ofType(await set.eventsOf(run.runId), 'tool_progress').map(({ data }) => data)).toEqual([1, 2, 3])
  })
})

describe('a tool that breaks its contract', () => {
  const breaches: Readonly<Record<string, { run: () => unknown; says: string; throws?: true }>> = {
    'ends without a result': { run: () => signals(), says: 'The tool ended without a result.' },
    'throws before it runs': {
      run: () => {
        throw new RangeError('no disk')
      },
      says: 'The tool failed: no disk',
      throws: true,
    },
    errors: {
      run: () => throwError(() => new Error('broken')),
      says: 'The tool failed: broken',
      throws: true,
    },
    'errors with nothing': {
      run: () => throwError(() => undefined),
      says: 'The tool failed: undefined',
      throws: true,
    },
    'answers no Observable': {
      run: () => 'done',
      says: 'The tool broke its contract: its run did not return an Observable',
    },
    'reports nothing at all': { run: () => signals(null), says: 'The tool broke its contract' },
    'reports an unknown signal': {
      run: () => signals({ type: 'tool_dreamt' }),
      says: 'The tool broke its contract',
    },
    'reports an outcome that is not its own to give': {
      run: () => signals({ ...success, outcome: 'denied' }),
      says: 'The tool reported the outcome denied, which a tool cannot report.',
    },
    'reports an outcome that does not exist': {
      run: () => signals({ ...success, outcome: 'splendid' }),
      says: 'The tool broke its contract: it reported tool_ended that is not sound: outcome',
    },
    'ends with invalid content': {
      run: () => signals({ ...success, content: 'It did.' }),
      says: 'The tool broke its contract: it reported tool_ended that is not sound: content',
    },
    'ends with content that JSON cannot carry': {
      run: () => signals({ ...success, content: [{ type: 'text', text: 'It did.', size: 1n }] }),
      says: 'The tool broke its contract: it reported tool_ended that is not sound: content',
    },
  }

  it.each(Object.entries(breaches))(
    'fails its call when it %s, and the run continues',
    async (_name, breach) => {
      const { result, run, set } = await callTool(toolOf(breach.run))
      expect(result.outcome).toBe('failed')
      expect(said(result)).toContain(breach.says)
      expect(run).toMatchObject({ reason: 'answered', text: 'Done.', toolCalls: 1 })
      expect(set.reported).toHaveLength(breach.throws ? 1 : 0)
    },
  )

  it('fails its call when its answer is nested deeper than stores can hold', async () => {
    const nested = (depth: number): unknown =>
      Array.from({ length: depth }).reduce<unknown>((inner) => ({ inner }), 'end')
    const answer = (depth: number): Observable<ToolSignal> =>
      signals({ ...success, content: [{ type: 'text', text: 'It did.', more: nested(depth) }] })
    expect((await callTool(toolOf(() => answer(300)))).result.outcome).toBe('success')
    for (const depth of [600, 100_000]) {
      const { result, run } = await callTool(toolOf(() => answer(depth)))
      expect([result.outcome, run.reason]).toEqual(['failed', 'answered'])
    }
    const circle: { self?: unknown; other?: unknown } = {}
    Object.assign(circle, { self: circle, other: circle })
    const round = signals({ ...success, content: [{ type: 'text', text: 'It did.', more: circle }] })
    expect((await callTool(toolOf(() => round))).result.outcome).toBe('failed')
  })

  it('reads that its effect may have taken place, where only its report is at fault', async () => {
    const { result } = await callTool(toolOf(() => signals({ ...success, content: 7 })))
    expect(said(result)).toContain('may have taken effect')
  })

  it('is heard once when it ends twice', async () => {
    const second = { ...success, content: [{ type: 'text', text: 'And again.' }] }
    const { result } = await callTool(
      toolOf(() => signals(success, second, { type: 'tool_progressed', data: 1 })),
    )
    expect([result.outcome, said(result)]).toEqual(['success', 'It did.'])
  })

  it('does not lose its result by an error after it', async () => {
    const run = (): Observable<unknown> =>
      new Observable((subscriber) => {
        subscriber.next(success)
        subscriber.error(new Error('late'))
      })
    expect((await callTool(toolOf(run))).result.outcome).toBe('success')
  })

  it('does not lose its result by progress that JSON cannot carry', async () => {
    const { result, set, run } = await callTool(
      toolOf(() =>
        signals({ type: 'tool_progressed', data: Number.NaN }, { type: 'tool_progressed' }, success),
      ),
    )
    expect([result.outcome, said(result)]).toEqual(['success', 'It did.'])
    expect(ofType(await set.eventsOf(run.runId), 'tool_progress')).toEqual([])
  })

  it('cannot end the run, or the process, by a teardown that throws', async () => {
    const run = (): Observable<unknown> =>
      new Observable((subscriber) => {
        void Promise.resolve().then(() => subscriber.next(success))
        return () => {
          throw new Error('cannot close')
        }
      })
    const { result, set } = await callTool(toolOf(run))
    expect(result.outcome).toBe('success')
    expect(set.reported.map(String)).toEqual([expect.stringContaining('cannot close')])
  })

  it('cannot end the run by a subscriber to its cancellation that throws', async () => {
    const run = ({ cancelled$ }: ToolRun): Observable<unknown> => {
      cancelled$.subscribe(() => {
        throw new Error('not now')
      })
      return new Observable()
    }
    const { result, set } = await callTool(toolOf(run, { timeoutMs: 100 }))
    expect(result.outcome).toBe('timed_out')
    expect(set.reported.map(String)).toEqual(['Error: not now'])
  })

  it('cannot speak in the name of the person who cancels', async () => {
    const run = (call: ToolRun): Observable<unknown> => {
      expect(call.cancelled$).not.toHaveProperty('next')
      return signals(success)
    }
    expect((await callTool(toolOf(run))).result.outcome).toBe('success')
  })
})

describe('the check of a call', () => {
  const verdicts: Readonly<Record<string, { check: () => unknown; outcome: string; says: string }>> = {
    refuses: {
      check: () => ({ kind: 'refuse', outcome: 'invalid_input', text: 'city: missing' }),
      outcome: 'invalid_input',
      says: 'city: missing',
    },
    throws: {
      check: () => {
        throw new Error('no database')
      },
      outcome: 'denied',
      says: 'The check of this call failed, so it was not run: no database',
    },
    'answers nothing': {
      check: () => undefined,
      outcome: 'denied',
      says: 'The check of this call failed, so it was not run: its verdict is not',
    },
    'answers with an unknown verdict': {
      check: () => ({ kind: 'perhaps' }),
      outcome: 'denied',
      says: 'The check of this call failed, so it was not run: its verdict is not',
    },
    'answers with a function that looks like a verdict': {
      check: () => Object.assign(() => {}, { kind: 'run' }),
      outcome: 'denied',
      says: 'The check of this call failed, so it was not run: its verdict is not',
    },
    'refuses with an outcome that would say that it ran': {
      check: () => ({ kind: 'refuse', outcome: 'success', text: 'It did.' }),
      outcome: 'denied',
      says: 'The check of this call failed, so it was not run: its verdict is not',
    },
  }

  it('lets nothing run where the policy of the agent answers with an unknown verdict', async () => {
    for (const answer of [undefined, 'perhaps', {}, { deny: 7 }]) {
      const tool = testTool({ name: 'tool' })
      const { result } = await callTool(tool, { approval: () => answer as never })
      expect([result.outcome, tool.runs.length]).toEqual(['denied', 0])
    }
  })

  it.each(Object.entries(verdicts))('that %s lets nothing run', async (_name, { check, outcome, says }) => {
    const tool = testTool({ name: 'tool', check: check as () => CallVerdict })
    const { result, run } = await callTool(tool)
    expect(result.outcome).toBe(outcome)
    expect(said(result)).toContain(says)
    expect(tool.runs).toEqual([])
    expect(run).toMatchObject({ reason: 'answered', toolCalls: 0 })
  })
})
