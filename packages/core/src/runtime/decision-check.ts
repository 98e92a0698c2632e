import {
  anyObject,
  anyText,
  fields,
  filledText,
  maybe,
  numberFrom,
  type OptionFault,
} from '../vocabulary/option.ts'
import { limitName } from './part-check.ts'

interface DecisionGiven {
  readonly by: string
  readonly via?: string
  readonly attempt?: number
  readonly inputDigest?: string
}
const decision = {
  ...{ by: filledText, via: maybe(filledText) },
  ...{ attempt: maybe(numberFrom(1, { whole: true })), inputDigest: maybe(filledText) },
}
const approval = fields<DecisionGiven & { readonly input?: object }>({ ...decision, input: maybe(anyObject) })
const denial = fields<DecisionGiven & { readonly reason: string }>({ ...decision, reason: anyText })

/** Returns what is wrong with a decision that a caller gave; `undefined` where nothing is. */
export function decisionFault(
  kind: 'approve' | 'deny',
  toolCallId: unknown,
  decision: unknown,
): OptionFault | undefined {
  return filledText(toolCallId, 'the tool call id') ?? (kind === 'approve' ? approval : denial)(decision, '')
}

/** Returns what is wrong with a limit that a caller raises; `undefined` where nothing is. */
export function raiseFault(limit: unknown, max: unknown, by: unknown): OptionFault | undefined {
  return limitName(limit, 'the limit') ?? numberFrom(0)(max, String(limit)) ?? filledText(by, 'by')
}
