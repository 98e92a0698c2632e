import { option, type OptionCheck } from '@tallystick/core/kit'
import { type CallContext, type CallVerdict, type ToolEffect } from '@tallystick/core/vocabulary'

/** Which call a policy judges, and of which tool. */
export interface ApprovalContext<Context = unknown> extends CallContext<Context> {
  readonly tool: string
  readonly effect: ToolEffect
}

/** `true`: a person decides first; a string: the same, and this is the reason shown to that person; `false`: run it. */
export type ApprovalAnswer = boolean | string

/**
 * Says whether a person has to approve a call with this input. It must have no side effects, and is asked again
 * when the call is checked again. A policy that throws refuses the call: nothing runs unjudged.
 */
export type ApprovalFunction<Input, Context = unknown> = (
  input: Input,
  context: ApprovalContext<Context>,
) => ApprovalAnswer | Promise<ApprovalAnswer>

/** When a person has to approve a call: always, never, or when a function says so. */
export type ApprovalPolicy<Input, Context = unknown> = 'always' | 'never' | ApprovalFunction<Input, Context>

/** What can be given as a policy. */
export const approvalPolicy: OptionCheck = option.valueThat(
  "'always', 'never' or a function of the input",
  (value) => value === 'always' || value === 'never' || typeof value === 'function',
)

/** A policy's answer as a verdict. A policy that fails, or answers neither boolean nor string, refuses the call. */
export function judge<Input, Context>(
  policy: ApprovalPolicy<Input, Context>,
  input: Input,
  context: ApprovalContext<Context>,
): CallVerdict | Promise<CallVerdict> {
  // What a policy throws is the caller's own affair, and may hold what a model must not see.
  const failed = (): CallVerdict => failedPolicy(context.tool)
  try {
    const answer = ask(policy, input, context)
    const verdictOf = (given: unknown): CallVerdict => verdictOfAnswer(given) ?? failed()
    return option.isThenable(answer) ? answer.then(verdictOf, failed) : verdictOf(answer)
  } catch {
    return failed()
  }
}

function verdictOfAnswer(answer: unknown): CallVerdict | undefined {
  if (answer === false) return { kind: 'run' }
  if (answer === true || answer === '') return { kind: 'ask' }
  return typeof answer === 'string' ? { kind: 'ask', reason: answer } : undefined
}

function failedPolicy(tool: string): CallVerdict {
  const text =
    `Nothing was run: the approval policy of ${tool} failed, so it is unknown whether this call is allowed. ` +
    'The same call will be refused again until the policy is repaired. Continue without it, or say that it is not possible.'
  return { kind: 'refuse', outcome: 'denied', text }
}

/** Asks for approval when the predicate holds for the input: `whenInput(({ amount }) => amount > 100, 'over 100')`. */
export function whenInput<Input>(
  predicate: (input: Input) => boolean | Promise<boolean>,
  reason?: string,
): ApprovalFunction<Input> {
  return async (input) => ((await predicate(input)) ? (reason ?? true) : false)
}

/** Asks for approval when any of the policies does, with the reasons of all that do. */
export function anyOf<Input, Context>(
  ...policies: readonly ApprovalPolicy<Input, Context>[]
): ApprovalFunction<Input, Context> {
  return async (input, context) => {
    const answers = await askEach(policies, input, context)
    return answers.some((answer) => answer !== false) && reasonsOf(answers)
  }
}

/** Asks for approval when all of the policies do, with their reasons. Without policies it never asks. */
export function allOf<Input, Context>(
  ...policies: readonly ApprovalPolicy<Input, Context>[]
): ApprovalFunction<Input, Context> {
  return async (input, context) => {
    const answers = await askEach(policies, input, context)
    return answers.length > 0 && answers.every((answer) => answer !== false) && reasonsOf(answers)
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

async function askEach<Input, Context>(
  policies: readonly ApprovalPolicy<Input, Context>[],
  input: Input,
  context: ApprovalContext<Context>,
): Promise<readonly ApprovalAnswer[]> {
  const answers: ApprovalAnswer[] = []
  for (const policy of policies) {
    const answer: unknown = await ask(policy, input, context)
    if (typeof answer !== 'boolean' && typeof answer !== 'string')
      throw new TypeError('A policy gave no answer')
    answers.push(answer)
  }
  return answers
}

function reasonsOf(answers: readonly ApprovalAnswer[]): string | true {
  return answers.filter((answer) => typeof answer === 'string' && answer !== '').join('; ') || true
}
