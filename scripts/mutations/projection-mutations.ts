import { mutationsOf, type Mutation } from './mutation.ts'

/** Guards of what is made of events and can be dropped, by what comes of it when they are gone. */
export const projectionMutations: readonly Mutation[] = [
  ...mutationsOf('projection/snapshot/snapshots.ts', {
    'uses a snapshot of another history': [' and event.hash = snapshot.head_hash', ''],
    'uses a snapshot of other code': [
      'where snapshot.run_id = $1 and reducer = $2 and',
      'where snapshot.run_id = $1 and $2 = $2 and',
    ],
    'keeps in a snapshot what was taken away meanwhile': ['and revision = $8 ${held}', 'and $8 = $8 ${held}'],
    'keeps in a snapshot what is sealed for a subject': ['state.subject === undefined && ', ''],
    'keeps every snapshot of a run': [
      'while (kept.length > snapshotsOfRunMax)',
      'while (kept.length > snapshotsOfRunMax * 1000)',
    ],
  }),
  ...mutationsOf('projection/snapshot/bound-state.ts', {
    'takes a snapshot whose bytes have changed': [
      'if (Buffer.compare(snapshotDigest(runId, snapshot), snapshot.seal) !== 0) return undefined',
      '',
    ],
  }),
  ...mutationsOf('projection/refresh/projection-change.ts', {
    'writes over what others have written meanwhile': [
      `where name = 'runs' and revision = cast($1 as bigint)`,
      `where name = 'runs' and cast($1 as bigint) is not null`,
    ],
  }),
  ...mutationsOf('projection/refresh/projection-lag.ts', {
    'goes by projections of other code': ['if (version !== projectionVersion) return undefined', ''],
  }),
  ...mutationsOf('projection/refresh/projected-runs.ts', {
    'counts a run again with each change': ['if (before) totals.remove(before)', ''],
    'keeps a session as long as a run of it that is gone': [
      'for (const key of left) {',
      'for (const key of new Set<string>()) {',
    ],
  }),
  ...mutationsOf('projection/tables/forget-texts.ts', {
    'keeps snapshots of what was taken away': [
      `\`delete from \${table('snapshot')} where run_id = \${runId}\``,
      `\`delete from \${table('snapshot')} where run_id = \${runId} and seq = 0\``,
    ],
    'keeps telling of what was dropped': ['set summary = null, notes = null where', 'set notes = null where'],
  }),
]

/** The same for what only Postgres needs. */
export const projectionInPostgresMutations: readonly Mutation[] = [
  ...mutationsOf('postgres/projection-database.ts', {
    'does not wait for whoever takes something away': [`held: 'for share'`, `held: ''`],
    'leaves out events that have not settled': ['...(isLast ? unsettled : [])', ''],
    'continues after a place where no event is': [
      `if (after !== '' && !is_there)`,
      `if (after === 'nowhere')`,
    ],
    'goes past events that have not settled': [' and xid < $3::xid8', ' and $3::xid8 is not null'],
  }),
]
