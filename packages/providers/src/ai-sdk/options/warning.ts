import type { Warning } from '../../shared/options/warning.ts'

/**
 * Something in a request that the AI SDK's provider, or its vendor, could not express. The call continues without it.
 */
export interface AiSdkWarning extends Warning {
  /** The AI SDK's own word, such as `unsupported`, `compatibility`, `other`. */
  readonly what: string
}
