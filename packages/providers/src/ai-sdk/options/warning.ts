import type { Warning } from '../../shared/options/warning.ts'

/** Something that the AI SDK's provider, or its vendor, could not do of a request. The call continues without it. */
export interface AiSdkWarning extends Warning {
  /** The AI SDK's own word, such as `unsupported`, `compatibility`, `other`. */
  readonly what: string
}
