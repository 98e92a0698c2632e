import type { AgentOptions } from '@tallystick/core'
import {
  defaultHost,
  formatLegibly,
  formatErrorSentence,
  option,
  requireOptions,
} from '@tallystick/core/internal'
import { type JsonObject, toCanonicalJson, type ToolEffect } from '@tallystick/core/vocabulary'
import { createFailure } from '../report/failure.ts'
import { sampleCallId, sampleRunId } from '../samples/values.ts'
import { listHostileInputs, PATIENCE_MS } from './tool-contract.ts'

const { anyFunction, anyObject, fields, filledText, listOf, maybe, numberFrom, oneOf } = option

/** Decides about calls: `approval` of an agent or of a runtime. */
type ApprovalPolicy = NonNullable<AgentOptions<unknown>['approval']>
type PolicyCall = Parameters<ApprovalPolicy>[0]

export interface PolicyContractOptions {
  /** Calls that it decides about, beside hostile ones. */
  readonly calls?:
    | readonly {
        readonly name: string
        readonly input: JsonObject
        readonly effect?: ToolEffect | undefined
      }[]
    | undefined
  /** What the application passes to it. */
  readonly context?: unknown
  /** How long it may take to answer, in real milliseconds. Default: 1000. */
  readonly patienceMs?: number | undefined
}

const policyContractOptions = fields<PolicyContractOptions>({
  calls: maybe(
    listOf(
      fields<NonNullable<PolicyContractOptions['calls']>[number]>({
        name: filledText,
        input: anyObject,
        effect: maybe(oneOf(['read', 'write'])),
      }),
    ),
  ),
  context: maybe(() => undefined),
  patienceMs: maybe(numberFrom(1)),
})

export const policyPromises = {
  answers: "a policy answers each call with 'run', { run: 'why' }, 'ask', { ask: 'why' } or { deny: 'why' }",
  inTime: 'a policy answers in time',
  pure: 'a policy answers the same call the same each time',
  unchanged: 'a policy changes nothing of the call that it is asked about',
} as const

/** Each promise of an approval policy, bound to one. */
export function bindPolicy(
  policy: ApprovalPolicy,
  options: PolicyContractOptions = {},
): readonly { readonly promise: string; readonly run: () => Promise<void> }[] {
  requireOptions('contractOf.policy', anyFunction, policy, 'the policy')
  requireOptions('contractOf.policy', policyContractOptions, options)
  const calls = listCalls(options)
  const { patienceMs = PATIENCE_MS } = options
  const bind = (promise: string, test: (call: PolicyCall) => Promise<string | undefined>) => ({
    promise,
    run: async () => {
      for (const call of calls) {
        const what = await test(call)
        if (what === undefined) continue
        const page = {
          title: 'The call',
          lines: [`${call.effect} ${call.name} ${formatLegibly(call.input, 300)}`],
        }
        throw createFailure({ law: promise, subject: 'policy', what: `the policy ${what}`, page })
      }
    },
  })
  return [
    bind(policyPromises.answers, async (call) => {
      const answer = await ask(policy, call, patienceMs)
      if ('thrown' in answer) return `threw ${answer.thrown}`
      return 'given' in answer && !isVerdict(answer.given)
        ? `answered ${formatLegibly(answer.given, 100)}`
        : undefined
    }),
    bind(policyPromises.inTime, async (call) =>
      'late' in (await ask(policy, call, patienceMs))
        ? `has not answered within ${patienceMs} ms`
        : undefined,
    ),
    bind(policyPromises.pure, async (call) => {
      const [first, again] = [await ask(policy, call, patienceMs), await ask(policy, call, patienceMs)]
      const [one, other] = [first, again].map((answer) => formatLegibly(answer, 200))
      return one === other ? undefined : `answered ${one}, and the next time ${other}`
    }),
    bind(policyPromises.unchanged, async (call) => {
      const own = structuredClone(call)
      await ask(policy, own, patienceMs)
      const [before, after] = [call.input, own.input].map((input) => toCanonicalJson(input))
      return before === after ? undefined : `changed the input to ${formatLegibly(own.input, 100)}`
    }),
  ]
}

type Answer = { readonly given: unknown } | { readonly thrown: string } | { readonly late: true }

async function ask(policy: ApprovalPolicy, call: PolicyCall, patienceMs: number): Promise<Answer> {
  const late = Promise.withResolvers<Answer>()
  const stopTimer = defaultHost.clock.schedule(patienceMs, () => late.resolve({ late: true }))
  const answer = async (): Promise<Answer> => ({ given: await policy(call) })
  try {
    return await Promise.race([answer(), late.promise])
  } catch (error) {
    return { thrown: formatErrorSentence(error) }
  } finally {
    stopTimer()
  }
}

function isVerdict(given: unknown): boolean {
  if (given === 'run' || given === 'ask') return true
  const { run, ask, deny } = Object(given) as { readonly [name: string]: unknown }
  return [run, ask, deny].some((why) => typeof why === 'string')
}

/** The calls of a user, each with hostile inputs beside it, and calls of tools that no policy knows. */
function listCalls({ calls = [], context }: PolicyContractOptions): readonly PolicyCall[] {
  const runId = sampleRunId(1)
  const shared = { runId, turn: 1, toolCallId: sampleCallId(runId), agent: 'contract', context }
  const unknown = { name: 'no_such_tool', input: { path: '../..' }, effect: 'write' as const }
  return [...calls, unknown].flatMap(({ name, input, effect = 'write' }) =>
    [input, ...listHostileInputs(input)].map((each): PolicyCall => ({
      ...shared,
      name,
      effect,
      input: each,
    })),
  )
}
