import type { Call } from '../machine/state.ts'
import type { CallContext, Tool } from '../ports/tool.ts'
import type { JsonObject } from '../vocabulary/json.ts'
import { faultOf } from '../vocabulary/schema.ts'
import { verdictSchema } from '../vocabulary/signal-schema.ts'
import type { CallVerdict, CheckedCall, Signal } from '../vocabulary/signal.ts'
import type { ToolEffect } from '../vocabulary/tool-definition.ts'
import { textOfError } from './error-text.ts'

/** A call as an agent's approval policy sees it. */
export interface PolicyCall extends CallContext {
  readonly name: string
  readonly input: JsonObject
  readonly effect: ToolEffect
}

/**
 * An agent's own say about a call that its tool lets run or asks about: `run` (as the tool says), `ask`, or `deny`, with
 * a reason. Pure: a replay asks it again. A throw denies the call.
 */
export type ApprovalPolicy = (call: PolicyCall) => PolicyVerdict | Promise<PolicyVerdict>
/** What a policy answers. */
export type PolicyVerdict = 'run' | 'ask' | { readonly ask: string } | { readonly deny: string }

/** Whose calls are checked. */
export interface CallChecker {
  readonly tools: readonly Tool[]
  readonly approval?: ApprovalPolicy
}

/** Checks every call of a reply against its tool and the agent's policy, and posts one `calls_checked`. Runs nothing. */
export async function checkCalls(
  calls: readonly Call[],
  checker: CallChecker,
  context: Omit<CallContext, 'toolCallId'>,
  post: (signal: Signal) => void,
): Promise<void> {
  const checked = await Promise.all(
    calls.map(async (call): Promise<CheckedCall> => {
      const { toolCallId, name } = call
      const tool = checker.tools.find((known) => known.name === name)
      if (tool === undefined) {
        const text = `There is no tool named ${name}. Nothing was run; use one of the tools you were given.`
        return { toolCallId, verdict: { kind: 'refuse', outcome: 'unknown_tool', text } }
      }
      const { effect, recovery } = tool
      const verdict = await verdictOn(call, tool, checker.approval, { ...context, toolCallId })
      return { toolCallId, effect, recovery, verdict }
    }),
  )
  post({ type: 'calls_checked', turn: context.turn, calls: checked })
}

async function verdictOn(
  { name, input, malformed }: Call,
  tool: Tool,
  approval: ApprovalPolicy | undefined,
  context: CallContext,
): Promise<CallVerdict> {
  if (malformed) {
    const text = `The input is not a JSON object (${malformed.error}). Nothing was run; ask again with a JSON object that fits the schema.`
    return { kind: 'refuse', outcome: 'invalid_input', text }
  }
  try {
    const verdict = requireVerdict(await tool.check(input, context))
    if (verdict.kind === 'refuse' || approval === undefined) return verdict
    const policy = await approval({ ...context, name, input, effect: tool.effect })
    return requireVerdict(stricter(verdict, policy))
  } catch (error) {
    const text = `The check of this call failed, so it was not run: ${textOfError(error)}`
    return { kind: 'refuse', outcome: 'denied', text }
  }
}

/** Tools and policies may be written without a compiler. */
function requireVerdict(verdict: CallVerdict): CallVerdict {
  if (faultOf(verdictSchema, verdict)) throw new TypeError('its verdict is none of run, ask and refuse')
  return verdict
}

/** The agent's policy may ask for more than the tool does, never for less. */
function stricter(verdict: CallVerdict, policy: PolicyVerdict): CallVerdict {
  if (policy === 'run') return verdict
  if (policy === 'ask') return verdict.kind === 'ask' ? verdict : { kind: 'ask' }
  if ('ask' in policy) return { kind: 'ask', reason: policy.ask }
  return { kind: 'refuse', outcome: 'denied', text: policy.deny }
}
