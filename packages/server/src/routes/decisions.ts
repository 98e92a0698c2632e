import type { RunId } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { RefusedRequestError } from '../http/problem.ts'
import type { Principal } from '../access/principal.ts'
import { questionOf } from '../protocols/approval-id.ts'
import { requirePermission, type Served } from './served.ts'

/** A decision about a call as a chat has it, with the id of the question. */
export interface NamedDecision {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason: string
  readonly input?: JsonObject
}

/** Sends a decision to its run. Throws a problem if the run refuses it. */
export async function sendDecision(
  { runtime, context }: Served,
  principal: Principal,
  runId: RunId,
  { approvalId, approved, reason, input }: NamedDecision,
): Promise<void> {
  requirePermission(principal, approved ? 'approve' : 'deny')
  const question = questionOf(approvalId)
  if (question === undefined) {
    throw new RefusedRequestError(
      400,
      'malformed',
      'The approval has no id of this server. Send the id under which the approval was asked for.',
    )
  }
  const named = { ...question, by: principal.name, via: 'chat' } as const
  const command = approved
    ? ({ type: 'approve', ...named, ...omitUndefined({ input }) } as const)
    : ({ type: 'deny', ...named, reason } as const)
  const answer = await runtime.send(runId, command, { context })
  if (!answer.accepted) throw new RefusedRequestError(409, answer.code, answer.message)
}
