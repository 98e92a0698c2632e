import type { FeedbackSummary } from '@tallystick/ledger'
import type { RecordRow } from '@tallystick/ledger/record'
import type { ModelRequest, RunId, RuntimeEvent } from '@tallystick/core'
import type {
  FinishReason,
  Grant,
  ModelRef,
  Outcome,
  ParentRef,
  RequestAddition,
} from '@tallystick/core/vocabulary'

// What the page reads from a server: the answers of its routes. Times are milliseconds since 1970 UTC, costs US dollars.

/** The caller, and what the server lets it do. `GET /inspector/self`. */
export interface Self {
  readonly name: string
  /** The permissions of the caller: those of `Principal.may`. */
  readonly may: readonly string[] | 'everything'
  /** The agents that a run can be started with; none where the server has no configuration. */
  readonly agents: readonly string[]
  /** The ledger, for the title of the page: a file name, or a database and its schema. Never a password. */
  readonly title: string
  /** The runs were read from exports, into memory. */
  readonly isImported: boolean
}

/** The statuses of a run in a list. `interrupted`: it is unfinished, and no process drives it. */
export const rowStatuses = ['under_way', 'suspended', 'interrupted', 'done', 'failed', 'unreadable'] as const
export type RowStatus = (typeof rowStatuses)[number]

/** A run in the list. `GET /runs`. */
export interface RunRow {
  readonly runId: RunId
  readonly status: RowStatus
  readonly agent: string
  /** The beginning of its first input; absent if it was removed, or there is none. */
  readonly firstWords?: string
  readonly startedAt: number
  readonly lastAt: number
  readonly seq: number
  readonly turns: number
  readonly toolCalls: number
  readonly costUsd?: number
  readonly reason?: FinishReason
  /** The worst thing that happened in it: the outcome of a call, or why it ended. Absent if all went well. */
  readonly worst?: {
    readonly what: Outcome | FinishReason | 'model_attempt_failed' | 'unreadable'
    readonly text: string
  }
  /** Its last 40 tool calls, in their order. */
  readonly tools: readonly { readonly name: string; readonly outcome?: Outcome }[]
  readonly sessionId?: string
  readonly subject?: string
  readonly tags?: readonly string[]
  readonly parent?: ParentRef
  readonly feedback?: FeedbackSummary
}

/** A page of runs, newest first. */
export interface RunPage {
  readonly runs: readonly RunRow[]
  /** Where the next page begins; absent on the last one. */
  readonly before?: string
}

/** Filters of the list. All have to match. */
export interface RunQuery {
  readonly status?: readonly RowStatus[]
  readonly agent?: string
  readonly tool?: string
  readonly outcome?: string
  readonly sessionId?: string
  readonly subject?: string
  readonly tag?: string
  /** Who gave feedback, and bounds of its score, as numbers. */
  readonly feedbackBy?: string
  readonly minScore?: string
  readonly maxScore?: string
  /** Part of the first words, in either case. */
  readonly q?: string
  /** Why the runs ended. */
  readonly reason?: string
  /** Runs that began in this time, its end not included. */
  readonly startedSince?: number
  readonly startedUntil?: number
  /** Without child runs. */
  readonly roots?: true
  readonly before?: string
  readonly limit?: number
}

/** A run and its child runs. `GET /runs/ID/tree`. */
export interface RunNode {
  readonly runId: RunId
  readonly agent: string
  readonly status: RowStatus
  readonly startedAt: number
  readonly lastAt: number
  /** Input and output tokens, those of child runs that have ended included. */
  readonly tokens: number
  readonly costUsd?: number
  /** The call of the parent whose work it does, and what the parent granted for it. */
  readonly toolCallId?: string
  readonly grant?: Grant
  readonly children: readonly RunNode[]
}

/** Runs as cases of an evaluation. `GET /dataset`. */
export interface CasePage {
  /** As `tallystick dataset` prints them. */
  readonly cases: readonly object[]
  readonly leftOut: readonly { readonly runId: RunId; readonly reason: string }[]
  /** Where the next page begins, or which of the named runs is the last of this one; absent on the last page. */
  readonly before?: string
}

/** An event that a search found. `GET /search`. */
export interface Hit {
  readonly runId: RunId
  readonly seq: number
  readonly at: number
  readonly type: string
  readonly turn: number
  readonly toolCallId?: string
  readonly tool?: string
  /** Absent if the call has not ended. */
  readonly outcome?: Outcome
  readonly excerpt: string
}

/** A page of hits, those of the newest run first. It may hold few, or none, while more follow. */
export interface HitPage {
  readonly hits: readonly Hit[]
  /** Where the next page begins; absent on the last one. */
  readonly after?: string
}

/** What happened over time. `GET /stats`. */
export interface Stats {
  readonly buckets: readonly StatsBucket[]
}

/** The runs that began in an hour or a day. */
export interface StatsBucket {
  /** Its beginning. */
  readonly at: number
  readonly runs: number
  readonly done: number
  readonly failed: number
  readonly suspended: number
  /** Runs that failed, by why they ended. */
  readonly reasons: { readonly [reason: string]: number }
  readonly costUsd: number
  readonly tokens: number
  /** The time from the first to the last event of runs that have ended. Absent if none has. */
  readonly p50Ms?: number
  readonly p95Ms?: number
}

/** What has something to do and when, and which process holds which lease. `GET /due`. */
export interface Due {
  /** Runs that nobody drives, the earliest first; `at` is 0 for at once. `agent` is that of the root. */
  readonly due: readonly {
    readonly runId: RunId
    readonly at: number
    readonly agent: string
    /** It is a schedule of this name, or that goes by these times. */
    readonly schedule?: string
  }[]
  readonly leases: readonly {
    readonly runId: RunId
    readonly holder: string
    readonly leftMs: number
    readonly schedule?: string
  }[]
}

/** A row of the record as the store has it. */
export type { RecordRow } from '@tallystick/ledger/record'

/** A page of the rows of a run. `GET /runs/ID/record`. */
export interface RecordPage {
  readonly rows: readonly RecordRow[]
  /** The last event of the page; absent at the end of the run. */
  readonly after?: number
}

/** What the server itself found in a run. `GET /runs/ID/verify`. */
export interface Verification {
  readonly ok: boolean
  /** Events that were found sound, from the first on. */
  readonly events: number
  readonly broken?: RecordFault
  /** Set if an import brought the run, or what `reason` says of it. */
  readonly imported?: { readonly at: number; readonly by: string; readonly reason?: string }
  /** Up to which event a signed checkpoint covers the run; absent if the server was given no checkpoints. */
  readonly signed?: SignedUpTo
}

/** The request that a model got in a turn, made again from the record of its last attempt. `GET /runs/ID/request`. */
export interface TurnRequest {
  readonly runId: RunId
  readonly turn: number
  readonly attempt: number
  /** Of its `model_call_started`. */
  readonly seq: number
  readonly model: ModelRef
  readonly request: ModelRequest
  /** As it is on record. */
  readonly requestDigest: string
  /** Whether what the digest covers is as it was then. */
  readonly matches: boolean
  /** Fields that options of the model's adapter add to the request, or replace in it. Values are not on record. */
  readonly additions?: readonly RequestAddition[]
}

/** A run as a test for vitest. `GET /runs/ID/regression`. */
export interface RegressionFiles {
  readonly runId: RunId
  readonly events: number
  /** Events in which something was masked. */
  readonly redacted: number
  /** The test file, and the export that goes beside it under the name that the test expects. */
  readonly test: string
  readonly fixture: string
  readonly fixtureName: string
}

/** Where a run that was driven again differs from its record. `POST /runs/ID/replay`. */
export interface ReplayAnswer {
  readonly runId: RunId
  /** Events that happened again as they were recorded, from the first on. */
  readonly events: number
  readonly divergence?: {
    readonly seq: number
    /** Absent if the recording ends. */
    readonly recorded?: RuntimeEvent
    /** Absent if nothing happened. */
    readonly happened?: RuntimeEvent
    readonly differences: readonly {
      readonly path: string
      readonly recorded?: unknown
      readonly happened?: unknown
    }[]
  }
}

/** A place of a record that is not as it was written. */
export interface RecordFault {
  readonly seq: number
  readonly what: string
  readonly expected: string
  readonly found: string
}

/** The last event of a run that a signed checkpoint covers; 0 for none. */
export interface SignedUpTo {
  readonly seq: number
  /** The ledger as the checkpoints name it, which is the name of their signer. */
  readonly origin: string
  /** What is not as it was signed; without `seq`, the checkpoints themselves. */
  readonly broken?: Omit<RecordFault, 'seq'> & { readonly seq?: number }
}
