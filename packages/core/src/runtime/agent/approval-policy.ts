import type { CallContext } from '../../tools/tool.ts'
import type { AnyContext } from '../../events/agent-definition.ts'
import type { JsonObject } from '../../values/json.ts'
import type { ToolEffect } from '../../events/model-request.ts'

/** A call as an agent's approval policy sees it. */
export interface PolicyCall<Context = unknown> extends CallContext<Context> {
  /** The agent whose model asks for the call. */
  readonly agent: string
  readonly name: string
  readonly input: JsonObject
  readonly effect: ToolEffect
}

/**
 * Decides about a call that its tool allows or asks about: `run` (as the tool decides), `ask`, or `deny`, with a
 * reason. Pure: a replay calls it again. A throw denies the call.
 */
export type ApprovalPolicy<Context = AnyContext> = (
  call: PolicyCall<Context>,
) => PolicyVerdict | Promise<PolicyVerdict>
/** The result of a policy. */
export type PolicyVerdict = 'run' | 'ask' | { readonly ask: string } | { readonly deny: string }

/** Returns the verdict of a policy. Rejects where it answers none: a policy may be written without a compiler. */
export async function policyVerdict<Context>(
  policy: ApprovalPolicy<Context>,
  call: PolicyCall<Context>,
): Promise<PolicyVerdict> {
  const verdict: unknown = await policy(call)
  if (isVerdict(verdict)) return verdict
  throw new TypeError("it answered neither 'run', 'ask', { ask: 'why' } nor { deny: 'why' }")
}

function isVerdict(verdict: unknown): verdict is PolicyVerdict {
  if (verdict === 'run' || verdict === 'ask') return true
  const { ask, deny } = Object(verdict) as { readonly ask?: unknown; readonly deny?: unknown }
  return typeof ask === 'string' || typeof deny === 'string'
}

/**
 * Combines policies so that the strictest decides: if one denies a call it is denied, if one asks a person is asked.
 * Each policy checks every call.
 */
export function everyPolicy(...given: readonly (ApprovalPolicy | undefined)[]): ApprovalPolicy | undefined {
  const policies = given.filter((policy) => policy !== undefined)
  if (policies.length < 2) return policies[0]
  return async (call) => {
    const verdicts = await Promise.all(policies.map((policy) => policyVerdict(policy, call)))
    const isDenial = (verdict: PolicyVerdict): boolean => typeof verdict === 'object' && 'deny' in verdict
    const isQuestion = (verdict: PolicyVerdict): boolean => verdict !== 'run' && verdict !== 'ask'
    return (
      verdicts.find(isDenial) ??
      verdicts.find(isQuestion) ??
      verdicts.find((verdict) => verdict === 'ask') ??
      'run'
    )
  }
}
