import { decisionMutations } from './decision-mutations.ts'
import { projectionInPostgresMutations, projectionMutations } from './projection-mutations.ts'
import { foldMutations } from './fold-mutations.ts'
import type { Mutation } from './mutation.ts'
import { postgresMutations } from './postgres-mutations.ts'
import { removalMutations } from './removal-mutations.ts'
import { runtimeMutations } from './runtime-mutations.ts'
import { sqliteMutations } from './sqlite-mutations.ts'

/** What is broken, and who is to notice. */
export interface Subject {
  readonly name: string
  /** Folder of the package. */
  readonly place: string
  /** What the test runner is told beside the root: options, and names of test files; without names, all of them. */
  readonly tests: readonly string[]
  readonly mutations: readonly Mutation[]
}

const namesOf = (...names: readonly string[]): readonly string[] =>
  names.map((name) => `packages/ledger/test/${name}`)

/** The core, and the stores by their contract and their own tests. */
export const subjects: readonly Subject[] = [
  {
    name: 'core',
    place: 'packages/core',
    tests: ['--no-isolate'],
    mutations: [...foldMutations, ...decisionMutations, ...runtimeMutations],
  },
  {
    name: 'sqlite',
    place: 'packages/ledger',
    tests: namesOf(
      'sqlite-ledger',
      'sqlite-schema',
      'durability',
      'event-batch',
      'find',
      'verify-tampered',
      'watch-ledger',
    ),
    mutations: sqliteMutations,
  },
  {
    name: 'postgres',
    place: 'packages/ledger',
    tests: namesOf(
      ...['postgres-ledger', 'postgres-schema', 'postgres-durability', 'postgres-group-commit'],
      ...['postgres-contention', 'postgres-find', 'postgres-tail', 'postgres-append'],
    ),
    mutations: postgresMutations,
  },
  {
    name: 'removals',
    place: 'packages/ledger',
    tests: namesOf(
      ...[
        'redacted-payload',
        'stored-body',
        'removals.spec',
        'sqlite-schema',
        'postgres-removals',
        'postgres-schema',
      ],
    ),
    mutations: removalMutations,
  },
  {
    name: 'projections',
    place: 'packages/ledger',
    tests: namesOf('snapshots.spec', 'projections.spec'),
    mutations: projectionMutations,
  },
  {
    name: 'projections in postgres',
    place: 'packages/ledger',
    tests: namesOf('postgres-projections.spec'),
    mutations: projectionInPostgresMutations,
  },
]
