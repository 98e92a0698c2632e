import type { Ledger } from '@tallystick/core'
import { option, type OptionCheck } from '@tallystick/core/kit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { type ApprovalPolicy, approvalPolicy } from '../../approval/approval.ts'
import type { MemoryStore } from './memory-store.ts'

/** Where memories are kept, whose they are, and how much of them there may be. */
export interface MemoryOptions {
  /** `sqliteMemory(path)`, `postgresMemory({ connectionString })`, or a store of your own. */
  readonly store: MemoryStore
  /** The ledger of the runs. It holds the subject and the session of each run. */
  readonly ledger: Pick<Ledger, 'read'>
  /** Whether a run uses the memories of its subject or of its session. Default: its subject. */
  readonly per?: 'subject' | 'session' | undefined
  /** Whether there are tools that save and delete. Default true. */
  readonly write?: boolean | undefined
  /** When these tools need an approval. Default `never`. */
  readonly approval?: ApprovalPolicy<JsonObject> | undefined
  /** Characters of one memory, up to 10 000. Default 2 000. */
  readonly maxChars?: number | undefined
  /** Memories of one subject or session; saving more is refused. Up to 100 000. Default 1 000. */
  readonly maxMemories?: number | undefined
  /** Memories shown by one call, up to 100. Default 10. */
  readonly maxShown?: number | undefined
  /** The clock that says when a memory was saved. Default: the host's. */
  readonly now?: (() => number) | undefined
}

const { anyFunction, fields, maybe, oneOf, trueOrFalse, valueThat } = option

const wholeTo = (max: number): OptionCheck =>
  valueThat(
    `a whole number from 1 to ${max}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= max,
  )

const storeMembers: readonly (keyof MemoryStore)[] = [
  ...(['save', 'savedUnder', 'remove', 'wasRemovedUnder', 'search', 'list', 'erase', 'close'] as const),
]
const store: OptionCheck = valueThat('a store of memories, such as sqliteMemory(path)', (value) => {
  const members = Object(value) as Partial<MemoryStore>
  return storeMembers.every((member) => typeof members[member] === 'function')
})

/** The check of what `memoryTools` is given. */
export const memoryOptions: OptionCheck = fields<MemoryOptions>(
  {
    store,
    ledger: valueThat(
      'the ledger of the runs',
      (value) => typeof (Object(value) as Partial<Ledger>).read === 'function',
    ),
    per: maybe(oneOf(['subject', 'session'])),
    write: maybe(trueOrFalse),
    approval: maybe(approvalPolicy),
    maxChars: maybe(wholeTo(10_000)),
    maxMemories: maybe(wholeTo(100_000)),
    maxShown: maybe(wholeTo(100)),
    now: maybe(anyFunction),
  },
  { scope: 'per', readOnly: 'write', limit: 'maxShown', needsApproval: 'approval' },
)
