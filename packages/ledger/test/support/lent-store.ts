import type { Ledger } from '@tallystick/core'
import { internals, internalsOf, type Store } from '../../src/store/store.ts'

/** The store beneath a ledger of this package. */
export function storeOf(ledger: Ledger): Store {
  const found = internalsOf(ledger)
  if (found === undefined) throw new Error('This ledger lends no store.')
  return found.store
}

/** Lets a ledger lend its store with other members. The port of the ledger is not affected. */
export function lendWith<Lender extends Ledger>(ledger: Lender, changes: Partial<Store>): Lender {
  const found = internalsOf(ledger)
  const store = new Proxy(storeOf(ledger), {
    get(target, name): unknown {
      if (Object.hasOwn(changes, name)) return changes[name as keyof Store]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return Object.assign(ledger, { [internals]: { ...found, store } })
}

/** Has a ledger tell each statement that it sends. */
export function onAsk(ledger: Ledger, asked: (text: string) => void): void {
  const { database } = storeOf(ledger)
  const { ask } = database
  Object.assign(database, {
    ask: (text: string, values?: readonly unknown[]) => {
      asked(text)
      return ask(text, values)
    },
  })
}
