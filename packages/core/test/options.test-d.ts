// Checked by the compiler and never run: each `@ts-expect-error` fails the build once its line compiles.
import {
  type Agent,
  type AgentOptions,
  agentTool,
  type AgentToolOptions,
  type CompactionOptions,
  defineAgent,
  type ForkEdit,
  type ForkOptions,
  handoff,
  type HandoffOptions,
  type InContext,
  type Ledger,
  type ModelTimeouts,
  type PastOptions,
  type Run,
  type RunId,
  type RunOptions,
  type RunResult,
  type Runtime,
  type RuntimeOptions,
  type SessionRunOptions,
  type Tool,
} from '@tallystick/core'
import type { TurnChange } from '@tallystick/core/internal'
import type { GivenLimits, Json } from '@tallystick/core/vocabulary'
import { scriptedModel, type ScriptedReply } from '@tallystick/testkit'
import { expectTypeOf } from 'vitest'
import * as z from 'zod'

declare const runtime: Runtime
declare const runtimeLedger: Ledger
declare const someRun: RunId
const model = scriptedModel([])
const plain = { name: 'agent', instructions: '', model }

/** The optional fields of options that a caller may not give as `undefined`. */
type RefusesUndefined<T> = {
  [K in keyof T]-?: object extends Pick<T, K>
    ? { [P in K]: undefined } extends Pick<T, K>
      ? never
      : K
    : never
}[keyof T]

expectTypeOf<RefusesUndefined<AgentOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<AgentToolOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<CompactionOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<ForkEdit>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<ForkOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<GivenLimits>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<HandoffOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<ModelTimeouts>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<PastOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<InContext<RunOptions>>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<RuntimeOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<ScriptedReply>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<SessionRunOptions>>().toEqualTypeOf<never>()
expectTypeOf<RefusesUndefined<TurnChange>>().toEqualTypeOf<never>()

// What is optional at a caller may be passed on as it is.
declare const perhaps: { readonly atSeq?: number; readonly seq?: number; readonly text?: string }
const { atSeq, seq, text } = perhaps
runtime.run(defineAgent({ ...plain, retry: { baseMs: seq } }), 'Go.', { from: { runId: 'r', atSeq } })
runtime.fork('r', { atSeq: 1, edit: { results: [{ toolCallId: 'c', content: '', outcome: undefined }] } })
runtimeLedger.find({ turn: seq, sessionId: text })
runtimeLedger.runs({ sessionId: text, limit: seq })
runtimeLedger.read(someRun, { fromSeq: seq })

/** A result is narrowed by its status and its reason. */
export function reported(result: RunResult<{ city: string }>): string {
  if (result.status === 'suspended') return result.limit ?? String(result.pendingApprovals.length)
  if (result.status === 'interrupted') return 'to be resumed'
  expectTypeOf(result.reason).not.toEqualTypeOf<undefined>()
  // @ts-expect-error a run that ended otherwise may have no output
  if (result.reason !== 'answered') return result.output.city
  return result.output.city
}

/** A switch over the reasons is checked to its end. */
export function wordFor(result: RunResult): string | undefined {
  // @ts-expect-error no run ends for this reason
  return result.reason === 'bored' ? 'bored' : undefined
}

// What an agent answers: a text, what its schema gives out, or JSON.
expectTypeOf(defineAgent(plain)).toEqualTypeOf<Agent<string, unknown>>()
const weather = defineAgent({ ...plain, output: z.object({ degrees: z.coerce.number() }) })
expectTypeOf(weather).toEqualTypeOf<Agent<{ degrees: number }, unknown>>()
const schema = { type: 'object', properties: { n: { type: 'integer' } } }
const counted = defineAgent({ ...plain, output: schema })
expectTypeOf(counted).toEqualTypeOf<Agent<Json, unknown>>()
expectTypeOf(runtime.run(counted, 'Go.')).toEqualTypeOf<Run<Json>>()

// A run that is taken up answers what its agent does, where the agent is given.
expectTypeOf(runtime.resume('r', { agent: weather })).toEqualTypeOf<Run<{ degrees: number }>>()
expectTypeOf(runtime.resume('r')).toEqualTypeOf<Run>()
expectTypeOf(runtime.fork('r', { atSeq: 2, agent: weather })).toEqualTypeOf<Run<{ degrees: number }>>()

interface App {
  readonly user: string
}
interface Store extends App {
  readonly rows: number
}
declare const userTool: Tool<App>
declare const storeTool: Tool<Store>
declare const anyTool: Tool<unknown>

// What an agent needs is what the most demanding of its parts needs.
const both = defineAgent({ ...plain, tools: [userTool, storeTool, anyTool] })
expectTypeOf(both).toEqualTypeOf<Agent<string, Store>>()
const helped = defineAgent({ ...plain, instructions: ({ user }: App) => user, handoffs: [handoff(both)] })
expectTypeOf(helped).toEqualTypeOf<Agent<string, Store>>()
expectTypeOf(agentTool(both)).toExtend<Tool<Store>>()
// Where parts need unlike things, the agent says what it needs.
defineAgent<string, App & { readonly clock: Date }>({
  ...{ ...plain, tools: [userTool] },
  instructions: ({ clock }) => clock.toISOString(),
})
defineAgent({ ...plain, tools: [userTool], prepareTurn: (_state, { user }) => ({ instructions: user }) })

runtime.run(both, 'Go.', { context: { user: 'Ada', rows: 3 } })
// @ts-expect-error a context that an agent needs is to be given
runtime.run(both, 'Go.')
// @ts-expect-error all of it
runtime.run(both, 'Go.', { context: { user: 'Ada' } })
// @ts-expect-error to continue as well
runtime.resume('r', { agent: both })
runtime.run(weather, 'Go.')
runtime.run(weather, 'Go.', { context: { user: 'Ada' } })
// Lists of agents take those of any context.
export const known: readonly Agent<unknown>[] = [both, helped, weather, counted]
