import { failureText } from '../../shared/failure/failure-text.ts'
import type { Warning } from '../../shared/options/warning.ts'
import type { WirePart } from '../client/wire.ts'

/** Something that the AI SDK's provider, or its vendor, could not do of a request. The call continues without it. */
export interface AiSdkWarning extends Warning {
  /** The AI SDK's own word, such as `unsupported`, `compatibility`, `other`. */
  readonly what: string
}

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
