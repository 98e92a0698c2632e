import { failureText } from '../../shared/failure/failure-text.ts'
import type { WirePart } from '../client/wire.ts'
import type { AiSdkWarning } from '../options/warning.ts'

/** A warning as the AI SDK gives it. */
export type WireWarning = Extract<WirePart, { readonly type: 'stream-start' }>['warnings'][number]

/** The warning in one line. */
export function warningOf(warning: WireWarning): AiSdkWarning {
  const fields = Object.entries(warning).filter(([key, value]) => key !== 'type' && typeof value === 'string')
  return { what: warning.type, message: failureText(fields.map(([, value]) => value).join(': ')) }
}

/** Whether a provider says that it does not pass the schema of an answer on. */
export function isOfAnswerSchema(warning: WireWarning): boolean {
  return (
    'feature' in warning &&
    typeof warning.feature === 'string' &&
    warning.feature.startsWith('responseFormat')
  )
}
