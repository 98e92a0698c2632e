import type { ParameterValue, StatementBounds, StatementEnding } from '../answer/statement.ts'

/** What a process for statements is asked to do. */
export interface StatementRequest extends StatementBounds {
  readonly path: string
  readonly sql: string
  readonly parameters: readonly ParameterValue[] | Readonly<Record<string, ParameterValue>>
}

/** What the process of a statement says: that the statement runs now, which none does that is refused, then how it ended. */
export type StatementMessage =
  | { readonly kind: 'running' }
  | {
      readonly kind: 'ended'
      readonly ending: StatementEnding
      /** Whether the process should run no other statement. */
      readonly isSpent: boolean
    }
