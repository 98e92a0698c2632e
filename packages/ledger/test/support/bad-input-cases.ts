import {
  createRuntime,
  defineAgent,
  type Agent,
  type Ledger,
  type Model,
  type Run,
  type RunId,
  type RuntimeEvent,
  TallystickError,
  type Tool,
} from '@tallystick/core'
import { toCanonicalJson, type JsonObject, type ModelSignal } from '@tallystick/core/vocabulary'
import { scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { exportEvents, foldTo, importEvents, verifyLedger } from '@tallystick/ledger'
import { of } from 'rxjs'
import { expect } from 'vitest'

/** Stores for one test, each empty. */
export interface BadInputBed {
  readonly open: () => Ledger
}

/** Takes an agent through a run in a ledger, and answers what is on record of it. */
async function played(
  ledger: Ledger,
  steps: readonly ScriptedStep[],
  tools: readonly Tool[] = [],
): Promise<{ readonly run: Run; readonly agent: Agent; readonly events: readonly RuntimeEvent[] }> {
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model: scriptedModel(steps), tools })
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.')
  await run.result
  return { run, agent, events: await Array.fromAsync(ledger.read(run.id)) }
}

/** Every way of reading a run gives the same events, here and where it is moved to. */
async function requireKept(
  { open }: BadInputBed,
  ledger: Ledger,
  { run, events }: { readonly run: Run; readonly events: readonly RuntimeEvent[] },
): Promise<void> {
  expect(await Array.fromAsync(ledger.find({ runId: run.id }))).toEqual(events)
  const lines = await Array.fromAsync(exportEvents(ledger))
  const other = open()
  expect(await importEvents(other, lines)).toMatchObject({ events: events.length })
  expect(await Array.fromAsync(other.read(run.id))).toEqual(events)
  expect(await Array.fromAsync(exportEvents(other))).toEqual(lines)
  expect(await foldTo(other, run.id)).toEqual(await foldTo(ledger, run.id))
  for (const each of [ledger, other]) {
    expect((await Array.fromAsync(verifyLedger(each))).filter(({ ok }) => !ok)).toEqual([])
    await each.close()
  }
}

/** Text that stores have tripped over. */
const oddText =
  'NUL \0, half \ud800 and \udc00 pairs, \u2028 \ufeff, "quotes" \\ and \'; drop table event; --'

/** As `JSON.parse` makes it of what a model says: keys that an assignment does not create. */
const oddObject = JSON.parse(
  String.raw`{"__proto__":{"polluted":true},"constructor":{"prototype":1},"a\u0000b":"\ud800","":null,"n":[1e308,5e-324,-0]}`,
) as JsonObject

function nested(depth: number): JsonObject {
  return JSON.parse(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`) as JsonObject
}

function resultsOf(events: readonly RuntimeEvent[]): readonly unknown[] {
  return events.flatMap((event) => (event.type === 'tool_result' ? [[event.outcome, event.content]] : []))
}

/** What comes in that no store may lose, change or choke on; through the whole runtime, on any store. */
export const badInputCases: Readonly<Record<string, (bed: BadInputBed) => Promise<void>>> = {
  async 'keeps odd text of models and tools as it was, wherever it stands'(bed) {
    const ledger = bed.open()
    const echo = testTool({
      name: 'echo',
      run(call, report) {
        report.progress({ said: oddText, ...oddObject })
        return `${oddText} ${JSON.stringify(call.input)}`
      },
    })
    const steps = [
      { reasoning: oddText, text: oddText, toolCalls: [{ id: oddText, name: 'echo', input: oddObject }] },
      { text: oddText },
    ]
    const found = await played(ledger, steps, [echo])
    expect(resultsOf(found.events)).toEqual([
      ['success', [{ type: 'text', text: `${oddText} ${JSON.stringify(oddObject)}` }]],
    ])
    const said = found.events.flatMap((event) => (event.type === 'tool_request_ready' ? [event] : []))
    expect(said).toMatchObject([{ providerCallId: oddText }])
    expect(toCanonicalJson(said[0]?.input ?? {})).toBe(toCanonicalJson(oddObject))
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
    await requireKept(bed, ledger, found)
  },

  async 'runs tools under odd names, and says of names that nobody has that they are unknown'(bed) {
    const ledger = bed.open()
    const names = ['a\0b', 'half \ud800', '__proto__', '\u{1f4a5}']
    const tools = names.map((name) => testTool({ name, run: () => `of ${name}` }))
    const calls = [...names, 'constructor', '\udc00'].map((name) => ({ name, input: {} }))
    const found = await played(ledger, [{ toolCalls: calls }, { text: 'Done.' }], tools)
    const outcomes = found.events.flatMap((event) =>
      event.type === 'tool_result' ? [[event.name, event.outcome]] : [],
    )
    expect(Object.fromEntries(outcomes)).toEqual({
      ...Object.fromEntries(names.map((name) => [name, 'success'])),
      constructor: 'unknown_tool',
      '\udc00': 'unknown_tool',
    })
    await requireKept(bed, ledger, found)
  },

  async 'refuses a session that no store can name, and nothing is written'({ open }) {
    const ledger = open()
    const agent = defineAgent({ name: 'agent', instructions: 'Act.', model: scriptedModel([{ text: 'x' }]) })
    const runtime = createRuntime({ ledger, agents: [agent], host: { report: () => undefined } })
    for (const sessionId of ['a\0b', 'half \ud800']) {
      const { result } = runtime.run(agent, 'Go.', { sessionId })
      await expect(result).rejects.toMatchObject({ code: 'configuration' })
      await expect(result).rejects.toThrow(/NUL or half a surrogate pair.*Nothing was written.*Use plain ids/)
    }
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
    await ledger.close()
  },

  async 'ends a run, by the name of what is wrong, whose model asks for what JSON cannot carry'(bed) {
    for (const input of [nested(10_000), { n: Number.NaN }, { n: 1n }, { n: -Infinity }]) {
      const ledger = bed.open()
      const model = asking(input as JsonObject)
      const agent = defineAgent({
        name: 'agent',
        instructions: 'Act.',
        model,
        tools: [testTool({ name: 'deep' })],
      })
      const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.')
      expect(await run.result).toMatchObject({ status: 'done', reason: 'model_failed' })
      const events = await Array.fromAsync(ledger.read(run.id))
      const said: unknown = expect.stringMatching(
        /reported model_tool_request that is not sound: call\.input.*JSON object/,
      )
      expect(events.find(({ type }) => type === 'model_stream_failed')).toMatchObject({
        failure: { class: 'protocol', message: said },
      })
      await requireKept(bed, ledger, { run, events })
    }
  },

  async 'imports nothing of a line that is nested too deep to be stored, and stays sound'(bed) {
    const source = bed.open()
    const { run } = await played(source, [{ text: 'Done.' }])
    const lines = await Array.fromAsync(exportEvents(source))
    for (const depth of [10_000, 200_000]) {
      const deep = `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
      const last = (lines.at(-1) ?? '').replace(/^\{/, `{"mystery":${deep},`)
      const ledger = bed.open()
      const importing = importEvents(ledger, [...lines.slice(0, -1), last])
      await expect(importing).rejects.toBeInstanceOf(TallystickError)
      await expect(importing).rejects.toThrow(/Nothing of it was written/)
      const left = await Array.fromAsync(ledger.read(run.id))
      expect(left.map(({ seq }) => seq)).not.toContain(lines.length)
      expect((await Array.fromAsync(verifyLedger(ledger))).filter(({ ok }) => !ok)).toEqual([])
      await ledger.close()
    }
    await source.close()
  },

  async 'takes a tool result of four million bytes through a whole run, and wherever that is moved to'(bed) {
    const ledger = bed.open()
    const text = '0123456789abcdé'.repeat(250_000)
    const found = await played(
      ledger,
      [{ toolCalls: [{ name: 'dump', input: {} }] }, { text: 'Done.' }],
      [testTool({ name: 'dump', run: () => text })],
    )
    expect(Buffer.byteLength(text)).toBe(4_000_000)
    const [result] = found.events.flatMap((event) => (event.type === 'tool_result' ? event.content : []))
    expect(result?.type === 'text' && result.text === text).toBe(true)
    await requireKept(bed, ledger, found)
  },

  async 'leaves a run alone that a newer release has written, and hands out what is there'(bed) {
    for (const change of [{ type: 'from_the_future' }, { type: 'constructor' }, { v: 9 }]) {
      const ledger = bed.open()
      const { runId, agent, later } = await futureRun(ledger, change)
      const resumed = createRuntime({ ledger, agents: [agent] }).resume(runId)
      await expect(resumed.result).rejects.toMatchObject({ code: 'unknown_event' })
      await expect(resumed.result).rejects.toThrow(/A newer release wrote it: read the run with that one/)
      expect(await ledger.head(runId)).toEqual({ seq: later.seq, epoch: 1 })
      expect((await Array.fromAsync(ledger.read(runId))).at(-1)).toEqual(later)
      expect((await foldTo(ledger, runId, later.seq - 1)).seq).toBe(later.seq - 1)
      await expect(foldTo(ledger, runId)).rejects.toMatchObject({ code: 'unknown_event' })
      const lines = await Array.fromAsync(exportEvents(ledger))
      expect(JSON.parse(lines.at(-1) ?? '')).toEqual(later)
      const other = bed.open()
      await expect(importEvents(other, lines)).rejects.toMatchObject({ code: 'unknown_event' })
      expect((await other.head(runId))?.seq).toBe(later.seq - 1)
      const said = (await Array.fromAsync(verifyLedger(ledger))).find(({ scope }) => scope === 'run')
      expect(said?.broken).toMatchObject({ runId, seq: later.seq })
      for (const each of [ledger, other]) await each.close()
    }
  },

  async 'keeps a run whose tools answer and report 10,000 levels deep'(bed) {
    const ledger = bed.open()
    const deep = testTool({
      name: 'deep',
      run(_call, report) {
        for (const data of [nested(10_000), { n: Number.NaN }]) report.progress(data)
        return `${'['.repeat(10_000)}${']'.repeat(10_000)}`
      },
    })
    const found = await played(
      ledger,
      [{ toolCalls: [{ name: 'deep', input: {} }] }, { text: 'Done.' }],
      [deep],
    )
    expect(found.events.at(-1)).toMatchObject({ reason: 'answered' })
    expect(found.events.filter(({ type }) => type === 'tool_progress')).toEqual([])
    expect(resultsOf(found.events)).toMatchObject([
      ['success', [{ text: expect.stringMatching(/^\[{10000}\]{10000}$/) }]],
    ])
    await requireKept(bed, ledger, found)
  },
}

/** A model that asks for a tool with an input of any kind, as an adapter might that was written without a compiler. */
function asking(input: JsonObject): Model {
  const call = { type: 'tool_call', providerCallId: 'c1', name: 'deep', input } as const
  return {
    provider: 'scripted',
    api: 'script',
    modelId: 'scripted-1',
    stream: () =>
      of<ModelSignal[]>(
        { type: 'model_started' },
        { type: 'model_tool_request', part: 0, call },
        { type: 'model_finished', stopReason: 'tool_use', parts: [{ part: 0, ...call }] },
      ),
  }
}

/** A run that waits for a person, with an event of an unknown type after it. */
async function futureRun(
  ledger: Ledger,
  change: object,
): Promise<{ readonly runId: RunId; readonly agent: Agent; readonly later: RuntimeEvent }> {
  const pay = testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })
  const { run, agent, events } = await played(ledger, [{ toolCalls: [{ name: 'pay', input: {} }] }], [pay])
  const { seq, at } = events.at(-1) as RuntimeEvent
  const known = { runId: run.id, seq: seq + 1, epoch: 1, turn: 1, at, v: 1, type: 'cancel_requested' }
  const later = { ...known, mystery: [1], ...change } as unknown as RuntimeEvent
  await ledger.append(run.id, { expectedSeq: seq, epoch: 1 }, [later], { durability: 'barrier' })
  return { runId: run.id, agent, later }
}
