import { mutationsOf, type Mutation } from './mutation.ts'

const bodies = {
  'a large text is written into every event that holds it': [
    'if (large.length === 0) return whole',
    'if (large.length > 0) return whole',
  ],
  'a sealed body may stand in the place of another': [
    'sealer.open(rest, Buffer.from(envelopeText(envelope)))',
    'sealer.open(rest, contentPlace)',
  ],
  'what is readable of a sealed body is what was said': [
    'const kept = redactedPayload(event) as unknown as Json',
    'const kept = bodyOf(event)',
  ],
} as const

const sealing = {
  'the same event is other bytes when it is sealed again': [
    'const nonce = createHmac(',
    'const nonce = createHmac(\n      `sha256`,\n      Buffer.from(String(process.hrtime.bigint())),\n    )\n      .update(bytes)\n      .digest()\n      .subarray(0, nonceBytes)\n    void createHmac(',
  ],
} as const

const keys = {
  'who continues with a sealed run without its key writes in the clear': [
    'if (bytes === undefined) throw this.#unavailable(runId)',
    'if (bytes === undefined) return undefined',
  ],
  'a run of a subject is not sealed': [
    'const key = await this.#keyring.keyOf(subject)',
    'if (subject) return undefined\n    const key = await this.#keyring.keyOf(subject)',
  ],
} as const

const masks = {
  'the digest of an input is left, by which a guess can be confirmed': [
    '...{ toolCallId, name, plan, inputDigest: redactedDigest(toolCallId) },',
    '...{ toolCallId, name, plan, inputDigest: call.inputDigest },',
  ],
  'what a tool answered is left': ['content: redactedParts(content),', 'content,'],
} as const

const records = {
  'a removal may be changed unseen': [
    'removal.pos === previous.pos + 1 && hexOf(removalHash(previous.hash, removal)) === hexOf(removal.hash)',
    'removal.pos === previous.pos + 1',
  ],
} as const

const schema = {
  'a payload goes without a removal on record': [
    `'delete on payload',\n    'exists`,
    `'delete on payload',\n    'false and exists`,
  ],
  'events may be removed': [
    "refusal('event_remains', 'delete on event', `not ${isDropped('old.run_id')}`, 'events are never removed'),",
    '',
  ],
  'a run that was dropped may come back': ["isDropped('new.run_id'),", "'false',"],
  'a command that was taken may be taken again': [
    "'or (old.taken_seq is not null and new.taken_seq <> old.taken_seq)',",
    "'',",
  ],
} as const

const store = {
  'a content goes while another event refers to it': [
    "'delete from content where digest = $digest and not exists (select 1 from content_use where digest = $digest)',",
    "'delete from content where digest = $digest',",
  ],
  'commands that were taken keep what they said': ['    blankInbox.run({ runId })\n', ''],
  'what is taken away stays in the log': [
    "this.#database.pragma('wal_checkpoint(truncate)')",
    'void this.#database',
  ],
} as const

const opening = {
  'what is taken away is not written over': [
    "database.pragma('secure_delete = on')",
    "database.pragma('secure_delete = off')",
  ],
} as const

const rules = {
  'retention takes from runs that have not ended': [
    "and exists (select 1 from event ended where ended.run_id = event.run_id and ended.once_key = 'run_finished')",
    '',
  ],
} as const

const postgresSchema = {
  'in Postgres a payload goes without a removal on record': [
    '@.event using (pos) where not exists',
    '@.event using (pos) where false and not exists',
  ],
  'in Postgres a run that was dropped may come back': [
    "always('run', 'run_returns'),",
    '`drop trigger run_returns on ${place}.run`,',
  ],
} as const

const postgresStore = {
  'in Postgres a content goes while another event refers to it': [
    'and not exists (select from ${schema}.content_use where content_use.digest = content.digest)`,\n    blankInbox',
    '`,\n    blankInbox',
  ],
} as const

/** Faults of what keeps contents, seals and removals, in both stores. */
export const removalMutations: readonly Mutation[] = [
  ...mutationsOf('content/event/stored-body.ts', bodies),
  ...mutationsOf('content/payload/encrypted-bytes.ts', sealing),
  ...mutationsOf('content/event/run-keys.ts', keys),
  ...mutationsOf('content/payload/redacted-payload.ts', masks),
  ...mutationsOf('record/removal.ts', records),
  ...mutationsOf('sqlite/migrations/0004-removals.ts', schema),
  ...mutationsOf('sqlite/write/removals.ts', { ...store, ...rules }),
  ...mutationsOf('sqlite/connection/open-database.ts', opening),
  ...mutationsOf('postgres/migrations/0004-removals.ts', postgresSchema),
  ...mutationsOf('postgres/write/removals.ts', postgresStore),
]
