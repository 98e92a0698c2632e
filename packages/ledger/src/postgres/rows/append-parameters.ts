/** What an append does beside writing events after heads. Its statement has no part for what it does not do. */
export interface AppendShape {
  readonly durability: 'barrier' | 'lazy'
  /** Whether it is of one run. */
  readonly isAlone: boolean
  /** Whether it begins a run; of several, whether any may begin. */
  readonly begins: boolean
  /** Whether commands leave the inbox. */
  readonly takes: boolean
  /** Whether facts about calls are stated that may be recorded once. */
  readonly states: boolean
  /** Whether events refer to large contents. */
  readonly isLarge: boolean
  /** Whether runs begin with what was said before. */
  readonly carries: boolean
  /** Whether leases begin, are renewed or end. */
  readonly leases: boolean
}

/** What a statement may be given, and the types of it. */
const types = {
  // Of the only run; of several runs, an array of each.
  runId: 'text',
  expectedSeq: 'int8',
  epoch: 'int8',
  headSeq: 'int8',
  headHash: 'bytea',
  previousHash: 'bytea',
  sessionId: 'text',
  sessionPlace: 'int8',
  isSealed: 'bool',
  // Null where the lease stays as it is; where it ends, an empty name.
  leaseHolder: 'text',
  leaseForMs: 'int8',
  // Of each row. `whose` is the place of its run, from 1; `firstSeq` is 0 where the row holds one event.
  whose: 'int8[]',
  firstSeq: 'int8[]',
  seq: 'int8[]',
  type: 'text[]',
  v: 'int8[]',
  turn: 'int8[]',
  toolCallId: 'text[]',
  at: 'int8[]',
  onceKey: 'text[]',
  bodyCommit: 'bytea[]',
  hash: 'bytea[]',
  salt: 'bytea[]',
  body: 'bytea[]',
  // Of each fact: the place of its run, and its number.
  statedBy: 'int8[]',
  factNumber: 'int8[]',
  // Of each command that is taken: the place of its run, and its key.
  takenBy: 'int8[]',
  takenKey: 'text[]',
  // Of each content; and of each use of one, the row, by its place from 1.
  digest: 'text[]',
  content: 'bytea[]',
  usedBy: 'int8[]',
  usedDigest: 'text[]',
  // Of each piece of history; and of each row that begins with one, by its place from 1.
  historyName: 'text[]',
  historyBefore: 'text[]',
  historyDigest: 'text[]',
  historyBody: 'bytea[]',
  carriedBy: 'int8[]',
  carriedName: 'text[]',
} as const

/** A value that the statement of an append is given. */
export type AppendParameter = keyof typeof types

/** The values of each row, in the order of its columns. */
export const eventParameters = [
  'firstSeq',
  'seq',
  'type',
  'v',
  'turn',
  'toolCallId',
  'at',
  'onceKey',
  'bodyCommit',
  'hash',
  'salt',
  'body',
] as const

const historyParameters = [
  ...(['historyName', 'historyBefore', 'historyDigest', 'historyBody'] as const),
  ...(['carriedBy', 'carriedName'] as const),
]

function factParameters({ isAlone }: AppendShape): readonly AppendParameter[] {
  return isAlone ? ['factNumber'] : ['factNumber', 'statedBy']
}

/** What the statement of a shape is given, in its order. */
export function appendParameters(shape: AppendShape): readonly AppendParameter[] {
  const { isAlone, begins, states, takes, isLarge, carries, leases } = shape
  return [
    ...(['runId', 'expectedSeq', 'epoch', 'headSeq', 'headHash'] as const),
    ...(isAlone && begins ? [] : (['previousHash'] as const)),
    ...(begins ? (['sessionId', 'sessionPlace'] as const) : []),
    ...(leases ? (['leaseHolder', 'leaseForMs'] as const) : []),
    ...(isAlone ? [] : (['whose'] as const)),
    ...eventParameters,
    ...(states ? factParameters(shape) : []),
    ...(takes ? (['isSealed', 'takenKey'] as const) : []),
    ...(takes && !isAlone ? (['takenBy'] as const) : []),
    ...(isLarge ? (['digest', 'content', 'usedBy', 'usedDigest'] as const) : []),
    ...(carries ? historyParameters : []),
  ]
}

/** Spells the parameters of a shape, such as `$3::int8`. */
export function spelledFor(shape: AppendShape): (name: AppendParameter) => string {
  const parameters = appendParameters(shape)
  return (name) => {
    const type = types[name]
    const isList = !shape.isAlone && !type.endsWith('[]')
    return `$${parameters.indexOf(name) + 1}::${type}${isList ? '[]' : ''}`
  }
}
