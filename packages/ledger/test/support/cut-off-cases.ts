import { createRuntime, defineAgent, type Ledger, type Run, type Runtime } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { watch, watchLedger } from '@tallystick/ledger'
import { lastValueFrom, type Observable } from 'rxjs'
import { expect } from 'vitest'

interface Suspended {
  readonly runtime: Runtime
  readonly run: Run
  /** What the host got to report. */
  readonly reported: readonly unknown[]
}

/** A run that waits for a person. */
async function suspended(ledger: Ledger): Promise<Suspended> {
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }])
  const tools = [testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })]
  const agent = defineAgent({ name: 'clerk', instructions: 'Pay.', model, tools })
  const reported: unknown[] = []
  const host = { clock: manualClock(), report: (error: unknown) => reported.push(error) }
  const runtime = createRuntime({ ledger, agents: [agent], host })
  const run = runtime.run(agent, 'Pay.')
  expect(await run.result).toMatchObject({ status: 'suspended' })
  return { runtime, run, reported }
}

/** Every stream that follows a run. */
function streamsOf(ledger: Ledger, run: Run): Readonly<Record<string, Observable<unknown>>> {
  return {
    events$: run.events$,
    state$: run.state$,
    text$: run.text$,
    textUpdates$: run.textUpdates$,
    watch: watch(ledger, run.id),
    watchLedger: watchLedger(ledger),
  }
}

/** How each stream ends: `completes`, or the code of its error. */
async function endsOf(streams: ReturnType<typeof streamsOf>): Promise<Readonly<Record<string, string>>> {
  const endOf = (stream$: Observable<unknown>): Promise<string> =>
    lastValueFrom(stream$, { defaultValue: undefined }).then(
      () => 'completes',
      (error: { readonly code: string }) => error.code,
    )
  const ends = Object.entries(streams).map(async ([name, stream$]) => [name, await endOf(stream$)] as const)
  return Object.fromEntries(await Promise.all(ends))
}

/** The same end for every stream. */
function all(streams: ReturnType<typeof streamsOf>, end: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(streams).map((name) => [name, end]))
}

/** How what follows runs ends when their ledger is closed, each case by its claim. */
export const cutOffCases: Readonly<Record<string, (open: () => Ledger) => Promise<void>>> = {
  async 'a reader of a run that waits gets the error of a closed ledger, and so does one that comes later'(
    open,
  ) {
    const ledger = open()
    const { run, reported } = await suspended(ledger)
    const streams = streamsOf(ledger, run)
    const ends = endsOf(streams)
    await ledger.head(run.id)
    await ledger.close()
    expect(await ends).toEqual(all(streams, 'ledger_unavailable'))
    expect(await endsOf(streams)).toEqual(all(streams, 'ledger_unavailable'))
    expect(reported).toEqual([])
  },

  async 'a reader of a run that the close interrupts gets it, after the last event'(open) {
    const ledger = open()
    const { promise: stuck } = Promise.withResolvers<string>()
    const started = Promise.withResolvers<void>()
    const run = (): Promise<string> => {
      started.resolve()
      return stuck
    }
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }])
    const agent = defineAgent({
      name: 'clerk',
      instructions: 'Pay.',
      model,
      tools: [testTool({ name: 'pay', run })],
    })
    const clock = manualClock()
    const handle = createRuntime({ ledger, agents: [agent], host: { clock } }).run(agent, 'Pay.')
    const streams = streamsOf(ledger, handle)
    await started.promise
    const ends = endsOf(streams)
    const closed = ledger.close()
    clock.advance(5_000)
    await closed
    expect(await ends).toEqual(all(streams, 'ledger_unavailable'))
    expect(await handle.result).toMatchObject({ status: 'interrupted' })
  },

  async 'a reader of a run that has ended gets its end, and one without a handler of errors is not reported'(
    open,
  ) {
    const ledger = open()
    const { run, reported } = await suspended(ledger)
    const waiting = await suspended(ledger)
    waiting.run.events$.subscribe()
    await run.cancel()
    await run.result
    const { watchLedger: _, ...ofRun } = streamsOf(ledger, run)
    const ends = await endsOf(ofRun)
    await ledger.close()
    expect(ends).toEqual(all(ofRun, 'completes'))
    expect([...reported, ...waiting.reported]).toEqual([])
  },
}
