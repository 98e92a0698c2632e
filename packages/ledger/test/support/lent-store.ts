import type { Ledger } from '@tallystick/core'
import type { Build, StoreDatabase } from '../../src/store/database.ts'
import { internals, getInternals, type Store } from '../../src/store/store.ts'

/** The store beneath a ledger of this package. */
export function storeOf(ledger: Ledger): Store {
  const found = getInternals(ledger)
  if (found === undefined) throw new Error('This ledger lends no store.')
  return found.store
}

/** Lets a ledger lend its store with other members. The port of the ledger is not affected. */
export function lendWith<Lender extends Ledger>(ledger: Lender, changes: Partial<Store>): Lender {
  const found = getInternals(ledger)
  const store = new Proxy(storeOf(ledger), {
    get(target, name): unknown {
      if (Object.hasOwn(changes, name)) return changes[name as keyof Store]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return Object.assign(ledger, { [internals]: { ...found, store } })
}

/** What a database was asked, and with which values. */
export interface Asked {
  readonly text: string
  readonly values: readonly unknown[]
}

/** A database that tells each question, and whose answers may be others. */
export function watchedDatabase(
  database: StoreDatabase,
  tell: (asked: Asked) => void,
  answer: <Row>(rows: readonly Row[], asked: Asked) => readonly Row[] = (rows) => rows,
): StoreDatabase {
  const watched = <Row>(build: Build<Row>) => {
    let asked: Asked = { text: '', values: [] }
    const telling: Build<Row> = (queries) => {
      const query = build(queries)
      const { sql: text, parameters: values } = query.compile(queries.db)
      asked = { text, values }
      tell(asked)
      return query
    }
    return { telling, answer: (rows: readonly Row[]) => answer(rows, asked) }
  }
  return {
    ...database,
    async query(build, options) {
      const seen = watched(build)
      return seen.answer(await database.query(seen.telling, options))
    },
    async ask(text, values = []) {
      tell({ text, values })
      return answer(await database.ask(text, values), { text, values })
    },
    async askBatch(text, order, values) {
      tell({ text, values })
      return answer(await database.askBatch(text, order, values), { text, values })
    },
  }
}

/** Has a ledger tell each statement that it sends. */
export function onAsk(ledger: Ledger, asked: (text: string) => void): void {
  const { database } = storeOf(ledger)
  Object.assign(
    database,
    watchedDatabase({ ...database }, ({ text }) => asked(text)),
  )
}
