import type * as z from 'zod'
import type { OutsideCommand } from '@tallystick/core/vocabulary'
import { approveBody, cancelBody, denyBody, inputBody, raiseBody, settleBody, type Input } from './bodies.ts'

/** Who sends a command, and the id of the input that it carries. */
export interface Sender {
  readonly by: string
  readonly newId: () => string
}

/** A command that was read from a body, as its sender completes it. */
type ReadCommand = (sender: Sender) => OutsideCommand

/** A command that a caller sends: the check of its body, and the body as a command of a sender. */
interface CommandKind {
  readonly body: z.ZodType
  readonly read: z.ZodType<ReadCommand>
}

function kindOf<Body>(
  body: z.ZodType<Body>,
  commandOf: (body: Body, sender: Sender) => OutsideCommand,
): CommandKind {
  const read = body.transform(
    (given): ReadCommand =>
      (sender) =>
        commandOf(given, sender),
  )
  return { body, read }
}

/** The commands that a caller sends to a run. */
export const commandNames = ['approve', 'deny', 'cancel', 'steer', 'queue', 'raise', 'settle'] as const
export type CommandName = (typeof commandNames)[number]

/** The commands of a caller, by the last part of their path. `by` is the principal: no body says who decides. */
export const commandKinds: Readonly<Record<CommandName, CommandKind>> = {
  approve: kindOf(approveBody, (body, { by }) => ({ type: 'approve', ...body, by, via: 'http' })),
  deny: kindOf(denyBody, (body, { by }) => ({ type: 'deny', ...body, by, via: 'http' })),
  cancel: kindOf(cancelBody, (body, { by }) => ({ type: 'cancel', ...body, by })),
  steer: kindOf(inputBody, (body, { newId }) => ({
    type: 'steer',
    message: messageOf(body.input),
    receipt: newId(),
  })),
  queue: kindOf(inputBody, (body, { newId }) => ({
    type: 'queue',
    message: messageOf(body.input),
    receipt: newId(),
  })),
  raise: kindOf(raiseBody, (body, { by }) => ({ type: 'raise_limit', ...body, by })),
  settle: kindOf(settleBody, ({ toolCallId, ...end }) =>
    'failed' in end
      ? { type: 'settle', toolCallId, outcome: 'failed', content: textParts(end.failed) }
      : {
          type: 'settle',
          toolCallId,
          outcome: 'success',
          content: typeof end.result === 'string' ? textParts(end.result) : end.result,
        },
  ),
}

function messageOf(given: Input): Extract<OutsideCommand, { type: 'steer' }>['message'] {
  return { role: 'user', parts: typeof given === 'string' ? textParts(given) : given }
}

function textParts(text: string): readonly { readonly type: 'text'; readonly text: string }[] {
  return [{ type: 'text', text }]
}
