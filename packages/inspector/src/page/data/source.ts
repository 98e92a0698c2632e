import type { RunPage, RunQuery, Self } from '../../api.ts'
import type { RunOrigin } from '../worker/run-origin.ts'

/** A problem that a source reports, in words for people. */
export class SourceError extends Error {}

/** Where the page gets runs from: a server, or an export. */
export interface Source {
  readonly kind: 'server' | 'file'
  readSelf(): Promise<Self>
  listRuns(query: RunQuery): Promise<RunPage>
  /** Where the worker reads the events of a run. */
  locateRun(runId: string): RunOrigin
  /** Calls `onChange` when runs may have changed. Returns how to stop. */
  watchRuns(onChange: () => void): () => void
  /** Reads a route of the server, such as `runs/ID/tree`. Rejects with a `SourceError` without a server. */
  read<Answer>(path: string, query?: Readonly<Record<string, string | number>>): Promise<Answer>
  /** Sends a command. Rejects with a `SourceError` without a server. */
  send<Answer>(path: string, body: object): Promise<Answer>
}
