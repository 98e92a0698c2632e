import {
  anyObject,
  anyText,
  fields,
  filledText,
  maybe,
  numberFrom,
  type OptionFault,
} from '../../vocabulary/options/option.ts'
import type { PendingApproval } from '../../machine/state/tally.ts'
import { limitName } from '../agent/part-check.ts'
import type { ShownApproval } from '../commands/shown-approvals.ts'

interface DecisionGiven {
  readonly by: string
  readonly via?: string
  readonly attempt?: number
  readonly inputDigest?: string
}
const decision = {
  by: filledText,
  via: maybe(filledText),
  attempt: maybe(numberFrom(1, { whole: true })),
  inputDigest: maybe(filledText),
}
const approval = fields<DecisionGiven & { readonly input?: object }>({ ...decision, input: maybe(anyObject) })
const denial = fields<DecisionGiven & { readonly reason: string }>({ ...decision, reason: anyText })

const shownApproval = fields<ShownApproval & Partial<PendingApproval>>({
  toolCallId: filledText,
  attempt: numberFrom(1, { whole: true }),
  inputDigest: filledText,
  runId: maybe(anyText),
  name: maybe(anyText),
  input: maybe(anyObject),
  reason: maybe(anyText),
})

/** Returns what is wrong with a decision that a caller gave; `undefined` where nothing is. */
export function decisionFault(
  kind: 'approve' | 'deny',
  call: unknown,
  decision: unknown,
): OptionFault | undefined {
  const fault =
    typeof call === 'object' ? shownApproval(call, 'the approval') : filledText(call, 'the tool call id')
  return fault ?? (kind === 'approve' ? approval : denial)(decision, '')
}

/** Returns what is wrong with a limit that a caller raises; `undefined` where nothing is. */
export function raiseFault(limit: unknown, max: unknown, by: unknown): OptionFault | undefined {
  return limitName(limit, 'the limit') ?? numberFrom(0)(max, String(limit)) ?? filledText(by, 'by')
}
