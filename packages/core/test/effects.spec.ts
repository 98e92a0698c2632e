import { Observable, Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Tool } from '@tallystick/core'
import type { Call } from '@tallystick/core/machine'
import type { ModelSignal, Signal, ToolSignal } from '@tallystick/core/vocabulary'
import { manualClock, sampleCallId, sampleRunId, testTool, type ManualClock } from '@tallystick/testkit'
import { startModelCall } from '../src/models/model-call.ts'
import { startTool, type RunningTool } from '../src/tools/tool-call.ts'

const runId = sampleRunId(1)
const toolCallId = sampleCallId(runId)
const context = { runId, turn: 1, toolCallId, context: undefined }
const ended: ToolSignal = {
  type: 'tool_ended',
  outcome: 'success',
  content: [{ type: 'text', text: 'Done.' }],
}
const progressed: ToolSignal = { type: 'tool_progressed', data: 'half' }
const deferred: ToolSignal = { type: 'tool_deferred', externalId: 'r1' }

interface Running extends RunningTool {
  readonly posted: Signal[]
  readonly reported: unknown[]
  readonly clock: ManualClock
}

/** Starts a tool that reports whatever comes out of a stream. */
function running(
  stream: Observable<ToolSignal>,
  more: Partial<Tool> = {},
  { effect, graceMs }: { readonly effect?: Call['effect']; readonly graceMs?: number } = {},
): Running {
  const posted: Signal[] = []
  const reported: unknown[] = []
  const clock = manualClock()
  const tool: Tool = { ...testTool({ name: 'tool' }), run: () => stream, ...more }
  const call: Call = {
    ...{ toolCallId, part: 0, providerCallId: 'c', name: 'tool', input: {}, status: 'started', attempts: 1 },
    ...(effect && { effect }),
  }
  const host = { clock, report: (error: unknown) => reported.push(error) }
  const running = startTool(
    { tool, call, context, host, ...(graceMs !== undefined && { graceMs }) },
    (signal) => posted.push(signal),
  )
  return {
    cancel: (reason) => running.cancel(reason),
    stop: () => running.stop(),
    posted,
    reported,
    clock,
  }
}

const typesOf = (posted: readonly Signal[]): readonly string[] => posted.map(({ type }) => type)

describe('a tool that runs', () => {
  it.each([
    ['an ending', ended, 'tool_ended'],
    ['a deferral', deferred, 'tool_deferred'],
  ])('is heard up to %s, and never again', (_name, last, type) => {
    const stream = new Subject<ToolSignal>()
    const { posted } = running(stream)
    for (const signal of [progressed, last, progressed, ended, deferred]) stream.next(signal)
    stream.error(new Error('late'))
    expect(typesOf(posted)).toEqual(['tool_progressed', type])
    expect(stream.observed).toBe(false)
  })

  it('is heard once when all of it comes at once, whatever comes after the ending', () => {
    const all = new Observable<ToolSignal>((subscriber) => {
      for (const signal of [ended, progressed, ended, deferred]) subscriber.next(signal)
      subscriber.error(new Error('late'))
    })
    expect(typesOf(running(all).posted)).toEqual(['tool_ended'])
  })

  it('is heard once when it throws after its ending', () => {
    const stream = new Subject<ToolSignal>()
    const run = (): Observable<ToolSignal> => {
      const late = new Observable<ToolSignal>((subscriber) => subscriber.next(ended))
      late.subscribe(stream)
      return new Observable((subscriber) => {
        subscriber.next(ended)
        throw new Error('late')
      })
    }
    const { posted } = running(stream, { run })
    expect(typesOf(posted)).toEqual(['tool_ended'])
    expect(posted[0]).toMatchObject({ outcome: 'success' })
  })

  it('is not heard once it is left behind, and does not hold on to its timer', () => {
    const stream = new Subject<ToolSignal>()
    const tool = running(stream, { timeoutMs: 1_000 })
    const { posted, clock } = tool
    tool.stop()
    expect(stream.observed).toBe(false)
    expect(clock.pending).toBe(0)
    stream.next(ended)
    clock.advance(2_000)
    expect(posted).toEqual([])
  })

  it('ends as timed out in its time, also when it takes the request to stop for a cancel', () => {
    const stopped: string[] = []
    const run: Tool['run'] = ({ cancelled$ }) =>
      new Observable((subscriber) => {
        cancelled$.subscribe((reason) => {
          stopped.push(reason)
          subscriber.next({
            type: 'tool_ended',
            outcome: 'cancelled',
            content: [{ type: 'text', text: 'stopped' }],
          })
        })
      })
    const { posted, clock } = running(new Subject(), { run, timeoutMs: 1_000 })
    clock.advance(999)
    expect(posted).toEqual([])
    clock.advance(1)
    expect(posted).toMatchObject([
      { outcome: 'timed_out', content: [{ text: 'stopped' }], durationMs: 1_000, attempt: 1 },
    ])
    expect(stopped).toEqual(['The tool took too long.'])
  })

  it('ends as timed out after a time without progress, and not while it reports some', () => {
    const stream = new Subject<ToolSignal>()
    const tool = running(stream, { quietMs: 1_000, timeoutMs: 10_000 })
    const { posted, clock } = tool
    for (let report = 0; report < 3; report++) {
      clock.advance(999)
      stream.next(progressed)
    }
    clock.advance(999)
    // A report that cannot be kept is a sign of life, too.
    stream.next({ type: 'tool_progressed', data: undefined as never })
    clock.advance(999)
    expect(typesOf(posted)).toEqual(['tool_progressed', 'tool_progressed', 'tool_progressed'])
    clock.advance(1)
    expect(posted.at(-1)).toMatchObject({ type: 'tool_ended', outcome: 'timed_out' })
    expect(clock.pending).toBe(0)
  })

  it('ends at its whole time, whatever progress it reports', () => {
    const stream = new Subject<ToolSignal>()
    const { posted, clock } = running(stream, { quietMs: 1_000, timeoutMs: 2_500 })
    for (let report = 0; report < 5; report++) {
      clock.advance(500)
      stream.next(progressed)
    }
    expect(posted.at(-1)).toMatchObject({ outcome: 'timed_out', durationMs: 2_500 })
    expect(clock.pending).toBe(0)
  })

  it('that writes and is quiet has its grace, and nothing that it reports then prolongs it', () => {
    const stream = new Subject<ToolSignal>()
    const write = { effect: 'write', quietMs: 1_000, timeoutMs: 1_500 } as const
    const { posted, clock } = running(stream, write, { effect: 'write', graceMs: 3_000 })
    clock.advance(1_000)
    for (let report = 0; report < 5; report++) {
      stream.next(progressed)
      clock.advance(500)
    }
    expect(typesOf(posted)).not.toContain('tool_ended')
    clock.advance(500)
    expect(posted.at(-1)).toMatchObject({ outcome: 'timed_out', durationMs: 4_000 })
    expect(clock.pending).toBe(0)
  })

  it('keeps a success that it reports when it is asked to stop', () => {
    const run: Tool['run'] = ({ cancelled$ }) =>
      new Observable((subscriber) => {
        cancelled$.subscribe(() => subscriber.next(ended))
      })
    const { posted, clock } = running(new Subject(), { run, timeoutMs: 1_000 })
    clock.advance(1_000)
    expect(posted).toMatchObject([{ outcome: 'success' }])
  })

  it('is asked to stop once, for the first reason, also when it listens late', () => {
    const reasons: string[] = []
    let listen: () => void = () => {}
    const run: Tool['run'] = ({ cancelled$ }) => {
      listen = () => void cancelled$.subscribe((reason) => reasons.push(reason))
      return new Subject()
    }
    const tool = running(new Subject(), { run, timeoutMs: 1_000 })
    tool.cancel('first')
    tool.cancel('second')
    listen()
    tool.clock.advance(1_000)
    expect(reasons).toEqual(['first'])
  })
})

describe('a model call', () => {
  const model = { provider: 'p', api: 'a', modelId: 'm' }
  const request = {
    ...{ instructions: '', messages: [], tools: [], parallelToolCalls: true },
    toolChoice: { type: 'auto' as const },
  }
  const finished: ModelSignal = { type: 'model_finished', stopReason: 'end', parts: [] }
  const text: ModelSignal = { type: 'model_text', part: 0, text: 'Hi' }

  function signalsOf(stream: Observable<ModelSignal>): Signal[] {
    const posted: Signal[] = []
    const call = { model: { ...model, stream: () => stream }, request, turn: 3, attempt: 2 }
    startModelCall(call, { clock: manualClock(), report: () => {} }, (signal) => posted.push(signal))
    return posted
  }

  it('is heard up to its end, and never again', () => {
    const stream = new Subject<ModelSignal>()
    const posted = signalsOf(stream)
    for (const signal of [text, finished, text, finished]) stream.next(signal)
    stream.complete()
    expect(posted).toEqual([text, finished].map((signal) => ({ ...signal, turn: 3, attempt: 2 })))
  })

  it('is heard up to its first fault, and never again', () => {
    const stream = new Subject<ModelSignal>()
    const posted = signalsOf(stream)
    for (const signal of [text, { type: 'model_text' } as never, finished]) stream.next(signal)
    stream.error(new Error('late'))
    expect(typesOf(posted)).toEqual(['model_text', 'model_failed'])
  })

  it('lends the adapter its clock, and nothing else of the host', () => {
    const clock = manualClock()
    const lent: unknown[] = []
    const stream = (_request: unknown, lending: unknown): Observable<ModelSignal> => {
      lent.push(lending)
      return new Subject()
    }
    startModelCall(
      { model: { ...model, stream }, request, turn: 1, attempt: 1 },
      { clock, report: () => {} },
      () => {},
    )
    expect(lent).toEqual([{ clock }])
  })
})
