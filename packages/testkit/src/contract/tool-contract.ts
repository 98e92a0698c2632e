import { NEVER, ReplaySubject } from 'rxjs'
import { defineAgent, type Tool } from '@tallystick/core'
import {
  defaultHost,
  formatFault,
  formatLegibly,
  offeredTool,
  option,
  requireOptions,
  verdictSchema,
} from '@tallystick/core/internal'
import type { CallContext, JsonObject, ToolRun } from '@tallystick/core/vocabulary'
import { scriptedModel, type ScriptedReply } from '../doubles/model.ts'
import { hostileTexts } from '../hostile/texts.ts'
import {
  type EffectCount,
  effectPromises,
  formatReply,
  formatTrouble,
  type Play,
  playAgent,
  type PlayedAgent,
} from '../properties/play-agent.ts'
import { type Breach, toolPromises, ToolWatch } from '../properties/watched-tools.ts'
import { createFailure, type Finding } from '../report/failure.ts'
import { sampleCallId, sampleRunId } from '../samples/values.ts'

const { anyFunction, anyObject, fields, listOf, maybe, numberFrom, valueThat } = option

export interface ToolContractOptions {
  /** Inputs that it accepts; every case plays each of them. At least one. */
  readonly inputs: readonly JsonObject[]
  /** Counts the effects of the tool so far, in the world outside: rows, mails, charges. Without it no effect is counted. */
  readonly effects?: EffectCount | undefined
  /** What the application passes to the tool. */
  readonly context?: unknown
  /** How long the tool may take without an ending before it counts as hung, in real milliseconds. Default: 1000. */
  readonly patienceMs?: number | undefined
}

const toolContractOptions = fields<ToolContractOptions>(
  {
    inputs: valueThat('at least one input', (value) => Array.isArray(value) && value.length > 0),
    effects: maybe(anyFunction),
    context: maybe(() => undefined),
    patienceMs: maybe(numberFrom(1)),
  },
  { input: 'inputs', examples: 'inputs', oracle: 'effects', timeoutMs: 'patienceMs' },
)

/** How long a tool or a policy may take where a test does not say. */
export const PATIENCE_MS: number = 1_000

/** A tool with what its cases need. */
interface Tested {
  readonly tool: Tool
  readonly input: JsonObject
  readonly effects: EffectCount | undefined
  readonly context: unknown
  readonly patienceMs: number
}

interface ToolCase {
  readonly promise: string
  /** Leaves the case out for a tool of which it says nothing. */
  readonly concerns?: (tool: Tool, effects: EffectCount | undefined) => boolean
  readonly run: (tested: Tested) => Promise<void>
}

const toolCases: readonly ToolCase[] = [
  {
    promise: 'a check of a tool answers, the same each time, and accepts the inputs that fit',
    run: async (tested) => {
      const { input, tool } = tested
      const [first, again] = [await check(tested, input), await check(tested, input)]
      if (first !== again) throw createCheckFailure(tested, input, `${first}, and the next time ${again}`)
      if (first.includes('refuse'))
        throw createCheckFailure(
          tested,
          input,
          `${first}, though it is an input that ${tool.name} is said to accept`,
        )
    },
  },
  {
    promise: 'a check of a tool answers whatever a model sends, without an effect',
    run: async (tested) => {
      const before = await tested.effects?.()
      for (const input of listHostileInputs(tested.input)) await check(tested, input)
      const made = ((await tested.effects?.()) ?? 0) - (before ?? 0)
      if (made > 0) throw createCheckFailure(tested, tested.input, `checks took effect ${made} times`)
    },
  },
  ...(['ends', 'once', 'sound', 'readable'] as const).map((name): ToolCase => ({
    promise: toolPromises[name],
    run: async (tested) => {
      requireKept(tested, await callOnce(tested), toolPromises[name])
    },
  })),
  {
    promise: toolPromises.stops,
    run: async (tested) => {
      // Asked before its first report, after it, and so on up to its last.
      for (let stopAfter = 0, last = 0; stopAfter <= last; stopAfter++) {
        const called = await callOnce(tested, { stopAfter })
        requireKept(tested, called, toolPromises.stops)
        last = called.reports.length - 1
      }
    },
  },
  {
    promise: 'a call of a tool whose time is up ends, with one result on record',
    run: async (tested) => {
      const tool = { ...tested.tool, timeoutMs: tested.tool.timeoutMs ?? 1_000 }
      const late = (clock: { advance(ms: number): void }): void => clock.advance(tool.timeoutMs)
      await playCall({ ...tested, tool }, {}, late)
    },
  },
  {
    promise: effectPromises.once,
    run: async (tested) => {
      for (const stored of [true, false]) {
        // One process alone: the run ended before the crash, so every point has been reached.
        for (let append = 1, dies = true; dies; append++) {
          const played = await playCall(tested, { crashes: [{ append, stored }] })
          dies = (played.simulated?.processes ?? 1) > 1 && !hasHung(played)
        }
      }
    },
  },
  {
    promise: 'a call of a tool that is cancelled at any moment has one result on record',
    run: async (tested) => {
      let played = await playCall(tested, {})
      for (const { seq } of played.runs[0] ?? []) {
        if (hasHung(played)) return
        played = await playCall(tested, { cancelAtSeq: seq })
      }
    },
  },
  {
    promise: 'a call of a tool that may be started again takes effect once, by its key',
    concerns: ({ effect, recovery, retry }, effects) =>
      effects !== undefined && effect === 'write' && (recovery === 'rerun' || retry !== undefined),
    run: async (tested) => {
      const { tool, effects = () => 0 } = tested
      const before = await effects()
      const call = toContext(tested)
      const first = await callOnce(tested, { call })
      const again = await callOnce(tested, { call, attempt: 2 })
      const made = (await effects()) - before
      if (made > 1)
        throw createFailure({
          law: effectPromises.once,
          subject: 'tool',
          what: `${tool.name} took effect ${made} times in two attempts of one call, which had the same idempotencyKey`,
          page: { title: 'The reports of both attempts', lines: [...first.reports, ...again.reports] },
        })
    },
  },
  {
    promise: 'a tool that is asked about a call in doubt says what became of it',
    concerns: ({ recovery }) => recovery === 'reconcile',
    run: async (tested) => {
      const { tool } = tested
      const call = toContext(tested)
      const ask = async (when: string, wrong: string): Promise<void> => {
        const { cancelled$: _never, ...run } = toRun(tested, call, 1)
        const answer: unknown = await inTime(tested, () => tool.reconcile?.(run))
        const { state } = Object(answer) as { readonly state?: unknown }
        if (state !== wrong && ['done', 'not_done', 'unknown'].includes(String(state))) return
        const what = `${when}, reconcile of ${tool.name} answers ${formatLegibly(answer, 100)}`
        throw createFailure({
          law: 'a tool that is asked about a call in doubt says what became of it',
          subject: 'tool',
          what,
        })
      }
      await ask('before the call', 'done')
      const { reports } = await callOnce(tested, { call })
      if (reports.some((line) => line.startsWith('ending success')))
        await ask('after a call that succeeded', 'not_done')
    },
  },
]

/** Each promise of the `Tool` port, bound to a tool. */
export function bindTool(
  tool: Tool,
  options: ToolContractOptions,
): readonly { readonly promise: string; readonly run: () => Promise<void> }[] {
  requireOptions('contractOf.tool', offeredTool, tool, 'the tool')
  requireOptions('contractOf.tool', toolContractOptions, options)
  requireOptions('contractOf.tool', listOf(anyObject), options.inputs, 'inputs')
  const { inputs, effects, context, patienceMs = PATIENCE_MS } = options
  return toolCases
    .filter(({ concerns = () => true }) => concerns(tool, effects))
    .map(({ promise, run }) => ({
      promise,
      run: async () => {
        for (const input of inputs) await run({ tool, input, effects, context, patienceMs })
      },
    }))
}

/** What one call reported, and the promises that it broke. */
interface CalledOnce {
  readonly reports: readonly string[]
  readonly breaches: readonly Breach[]
}

/** Makes one attempt of a call, and asks it to stop after so many of its reports. */
async function callOnce(
  tested: Tested,
  {
    stopAfter,
    call = toContext(tested),
    attempt = 1,
  }: { readonly stopAfter?: number; readonly call?: CallContext; readonly attempt?: number } = {},
): Promise<CalledOnce> {
  const watch = new ToolWatch(tested.patienceMs)
  const cancelled$ = new ReplaySubject<string>(1)
  const reports: string[] = []
  let isAsked = false
  const stop = (): void => {
    if (reports.length !== stopAfter || isAsked) return
    isAsked = true
    cancelled$.next('The run was cancelled.')
  }
  const note = (line: string): void => {
    reports.push(line)
    stop()
  }
  const run = { ...toRun(tested, call, attempt), ...(stopAfter !== undefined && { cancelled$ }) }
  const { breaches } = watch
  watch
    .watch(tested.tool)
    .run(run)
    .subscribe({
      next: (signal) => note(signal?.type === 'tool_ended' ? `ending ${signal.outcome}` : signal?.type),
      error: () => note('error'),
    })
  stop()
  await watch.close()
  return { breaches, reports }
}

function requireKept({ tool, input }: Tested, { breaches }: CalledOnce, kept: string): void {
  const breach = breaches.find(({ promise }) => promise === kept)
  if (breach === undefined) return
  const { promise, what, reports } = breach
  throw createFailure(
    { law: promise, subject: 'tool', what, page: { title: 'The reports of the call', lines: reports } },
    { example: [`${tool.name} is called with ${formatLegibly(input, 200)}`] },
  )
}

let calls = 0

/** A call of its own: services know calls by their keys. */
function toContext({ context }: Tested): CallContext {
  const runId = sampleRunId(1)
  return { runId, turn: 1, toolCallId: sampleCallId(runId, ++calls), context }
}

function toRun({ input }: Tested, call: CallContext, attempt: number): ToolRun {
  return { ...call, input, attempt, idempotencyKey: call.toolCallId, cancelled$: NEVER }
}

/** A tool that hangs, which other cases find, takes its time in every play. */
function hasHung({ findings }: PlayedAgent): boolean {
  return findings.some(({ law }) => law === toolPromises.ends || law === toolPromises.stops)
}

const ofOneAttempt: readonly unknown[] = Object.values(toolPromises)

/** Plays a run of an agent whose model makes this one call. */
async function playCall(
  { tool, input, effects, context, patienceMs }: Tested,
  trouble: Play['trouble'],
  onStart?: Play['onStart'],
): Promise<PlayedAgent> {
  const model = scriptedModel([])
  const agent = defineAgent<unknown>({
    name: 'contract',
    instructions: 'Call the tool.',
    model,
    tools: [tool],
  })
  const call: ScriptedReply = { toolCalls: [{ name: tool.name, input }] }
  const played = await playAgent({
    ...{ agent, patienceMs, onStart, trouble: { ...trouble, context } },
    maxModelCalls: 20,
    effects: new Map(effects ? [[tool.name, effects]] : []),
    reply: ({ messages }) => (messages.at(-1)?.role === 'tool' ? { text: 'Done.' } : call),
  })
  // What one attempt promises has cases of its own.
  const finding = played.findings.find(({ law }) => !ofOneAttempt.includes(law))
  if (finding) throw createFailure(finding, { example: [formatReply(call), ...formatTrouble(trouble)] })
  return played
}

/** The verdict of the tool's own check, in words. */
async function check(tested: Tested, input: JsonObject): Promise<string> {
  const { tool } = tested
  let verdict: unknown
  try {
    verdict = await inTime(tested, () => tool.check(structuredClone(input), toContext(tested)))
  } catch (error) {
    throw createCheckFailure(tested, input, `threw ${formatLegibly(error, 100)}`)
  }
  const fault = verdictSchema(verdict)
  if (fault)
    throw createCheckFailure(tested, input, `answered ${formatLegibly(verdict, 80)}: ${formatFault(fault)}`)
  const { kind, text, thrown } = verdict as {
    readonly kind: string
    readonly text?: string
    readonly thrown?: unknown
  }
  if (thrown !== undefined)
    throw createCheckFailure(tested, input, `failed: ${text ?? formatLegibly(thrown, 100)}`)
  return text === undefined ? kind : `${kind}: ${text}`
}

function createCheckFailure({ tool }: Tested, input: JsonObject, what: string): Error {
  const finding: Finding = {
    law: 'a check of a tool answers, whatever a model sends',
    subject: 'tool',
    what: `the check of ${tool.name} ${what}`,
  }
  return createFailure(finding, { example: [`the input is ${formatLegibly(input, 300)}`] })
}

/** Awaits an answer of the tool, for as long as it may take. */
async function inTime<T>({ patienceMs, tool }: Tested, ask: () => T | Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const stopTimer = defaultHost.clock.schedule(patienceMs, () =>
    late.reject(new Error(`${tool.name} did not answer within ${patienceMs} ms`)),
  )
  try {
    return await Promise.race([ask(), late.promise])
  } finally {
    stopTimer()
  }
}

/** Inputs as models and attackers send them: each field left out, of another type, or hostile. */
export function listHostileInputs(input: JsonObject): readonly JsonObject[] {
  const odd = [null, 0, -1, 1e308, '', [], {}, true, ...hostileTexts.map(({ text }) => text)]
  return [
    {},
    { ...input, unknown_field: 1 },
    ...Object.keys(input).flatMap((name) => {
      const { [name]: _left, ...others } = input
      return [others, ...odd.map((value) => ({ ...input, [name]: value }))]
    }),
  ]
}
