import { ConfigurationError } from '@tallystick/core'
import { option, type Schema, requireOptions } from '@tallystick/core/internal'
import {
  type Approvers,
  approvers,
  type CallContext,
  type CallVerdict,
  type ToolEffect,
} from '@tallystick/core/vocabulary'

/** The call that a policy decides about, and its tool. */
export interface ApprovalContext<Context = unknown> extends CallContext<Context> {
  readonly tool: string
  readonly effect: ToolEffect
}

/** A question to certain people: how many have to approve, and which roles they need. */
export interface ApproversAnswer {
  /** The reason that they are shown. */
  readonly ask?: string | undefined
  readonly approvers: Approvers | readonly Approvers[]
}

/**
 * `true`: a person decides first; a string: the same, and this is the reason shown to that person; `{ ask, approvers }`: the
 * same, and only these people may approve; `false`: run it.
 */
export type ApprovalAnswer = boolean | string | ApproversAnswer

/**
 * Returns whether a person has to approve a call with this input. It must have no side effects, since it is called
 * again when the call is checked again. If a policy throws, the call is refused.
 */
export type ApprovalFunction<Input, Context = unknown> = (
  input: Input,
  context: ApprovalContext<Context>,
) => ApprovalAnswer | Promise<ApprovalAnswer>

/** When a person has to approve a call: always, never, or when a function says so. */
export type ApprovalPolicy<Input, Context = unknown> = 'always' | 'never' | ApprovalFunction<Input, Context>

export const approvalPolicy: Schema = option.textOr(
  ['always', 'never'],
  option.valueThat("'always', 'never' or a function of the input", (value) => typeof value === 'function'),
)

/** A policy's answer as a verdict. A policy that fails, or gives none of the possible answers, refuses the call. */
export function judge<Input, Context>(
  policy: ApprovalPolicy<Input, Context>,
  input: Input,
  context: ApprovalContext<Context>,
): CallVerdict | Promise<CallVerdict> {
  const failed = (thrown: unknown): CallVerdict => {
    // Any other error belongs to the caller, and may contain content that a model must not see.
    const cause = thrown instanceof UnusableAnswer ? ` (${thrown.message})` : ''
    const text =
      `Nothing was run: the approval policy of ${context.tool} failed${cause}, so it is unknown whether this call is allowed. ` +
      'The same call will be refused again until the policy is repaired. Continue without it, or say that it is not possible.'
    return { kind: 'refuse', outcome: 'denied', text, thrown }
  }
  try {
    const answer = ask(policy, input, context)
    const toVerdict = (given: unknown): CallVerdict => {
      const unusable = findUnusable(policyAnswer, given, 'its answer')
      if (unusable) return failed(unusable)
      const { ask: reason = '', approvers: demands } = toQuestion(given as ApprovalAnswer)
      if (given === false) return { kind: 'run' }
      return {
        kind: 'ask',
        ...(reason !== '' && { reason }),
        ...(demands.length > 0 && { approvers: demands }),
      }
    }
    return option.isThenable(answer) ? answer.then(toVerdict, failed) : toVerdict(answer)
  } catch (error) {
    return failed(error)
  }
}

/** Says of an answer what is wrong with it, in words that hold none of its content. */
class UnusableAnswer extends TypeError {
  override readonly name = 'UnusableAnswer'
}

const policyAnswer: Schema = option.valueThat(
  'true, false, a text, or { ask, approvers: { count, roles } }',
  (value) => typeof value === 'boolean' || typeof value === 'string' || isQuestion(value),
)

function isQuestion(value: unknown): value is ApproversAnswer {
  const { ask: reason = '', approvers: demands } = Object(value) as { readonly [name: string]: unknown }
  const given: readonly unknown[] = [demands].flat()
  return (
    typeof reason === 'string' && given.length > 0 && given.every((each) => approvers(each) === undefined)
  )
}

/** The reason of an answer, and its demands as a list. */
function toQuestion(answer: ApprovalAnswer): {
  readonly ask?: string | undefined
  readonly approvers: readonly Approvers[]
} {
  if (typeof answer === 'string') return { ask: answer, approvers: [] }
  return typeof answer === 'boolean'
    ? { approvers: [] }
    : { ask: answer.ask, approvers: [answer.approvers].flat() }
}

function findUnusable(check: Schema, answer: unknown, path: string): UnusableAnswer | undefined {
  const fault = option.placeFault(path, check(answer))
  return fault && new UnusableAnswer(`${fault.path} ${fault.what}`)
}

function requireAnswer(check: Schema, answer: unknown, path: string): void {
  const unusable = findUnusable(check, answer, path)
  if (unusable) throw unusable
}

/**
 * Asks for approval when the predicate holds for the input: `whenInput(({ amount }) => amount > 100, 'over 100')`. A
 * predicate that answers neither true nor false refuses the call.
 */
export function whenInput<Input>(
  predicate: (input: Input) => boolean | Promise<boolean>,
  reason?: string,
): ApprovalFunction<Input> {
  requireOptions('whenInput', option.anyFunction, predicate, 'the predicate')
  requireOptions('whenInput', option.maybe(option.anyText), reason, 'the reason')
  return async (input) => {
    const holds = await predicate(input)
    requireAnswer(option.trueOrFalse, holds, 'the answer of the predicate of whenInput')
    return holds ? (reason ?? true) : false
  }
}

/** Asks for approval when any of the policies does, with the reasons of all that do. Takes at least one. */
export function anyOf<Input, Context>(
  ...policies: readonly ApprovalPolicy<Input, Context>[]
): ApprovalFunction<Input, Context> {
  return combine('anyOf', policies, (answers) => answers.some((answer) => answer !== false))
}

/** Asks for approval when all of the policies do, with their reasons. Takes at least one. */
export function allOf<Input, Context>(
  ...policies: readonly ApprovalPolicy<Input, Context>[]
): ApprovalFunction<Input, Context> {
  return combine('allOf', policies, (answers) => answers.every((answer) => answer !== false))
}

function combine<Input, Context>(
  subject: string,
  policies: readonly ApprovalPolicy<Input, Context>[],
  isAsked: (answers: readonly ApprovalAnswer[]) => boolean,
): ApprovalFunction<Input, Context> {
  requireOptions(subject, option.listOf(approvalPolicy), policies, 'policies')
  if (policies.length === 0) {
    throw new ConfigurationError(
      `${subject}: it got no policy, so no call would need an approval. Give at least one, or the policy 'never'.`,
    )
  }
  return async (input, context) => {
    const answers: ApprovalAnswer[] = []
    for (const policy of policies) {
      const answer = await ask(policy, input, context)
      requireAnswer(policyAnswer, answer, 'the answer of one of its policies')
      answers.push(answer)
    }
    if (!isAsked(answers)) return false
    const questions = answers.map(toQuestion)
    const reason = questions.flatMap((question) => question.ask || []).join('; ')
    const demands = questions.flatMap((question) => question.approvers)
    return demands.length === 0 ? reason || true : { ask: reason, approvers: demands }
  }
}

function ask<Input, Context>(
  policy: ApprovalPolicy<Input, Context>,
  input: Input,
  context: ApprovalContext<Context>,
): ApprovalAnswer | Promise<ApprovalAnswer> {
  if (policy === 'always') return true
  return policy === 'never' ? false : policy(input, context)
}
