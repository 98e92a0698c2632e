import { memoryLedger } from '@tallystick/core'
import * as handedOn from '@tallystick/core/testing'
import * as testkit from '@tallystick/testkit'
import * as contract from '@tallystick/testkit/contract'
import { describe, expect, it } from 'vitest'

const inMemory = { lacks: ['durable', 'shared'] } as const

describe('contractOf.ledger', () => {
  const cases = contract.contractOf.ledger(() => ({ open: () => memoryLedger() }), inMemory)

  it('has a case for each promise, but for those that need what the store lacks', () => {
    const meaningful = contract.ledgerContract.filter(({ needs }) => needs === undefined)
    expect(cases.map(({ promise }) => promise)).toEqual(meaningful.map(({ promise }) => promise))
    const all = contract.contractOf.ledger(() => ({ open: () => memoryLedger() }))
    expect(all).toHaveLength(contract.ledgerContract.length)
  })

  it('gives each case a store of its own, closes what it opened, and removes it', async () => {
    const left: string[] = []
    let stores = 0
    const watched = contract.contractOf.ledger(() => {
      const store = ++stores
      return {
        open: () => {
          const ledger = memoryLedger()
          return { ...ledger, close: async () => (left.push(`${store} closed`), ledger.close()) }
        },
        remove: () => void left.push(`${store} removed`),
      }
    }, inMemory)
    for (const { run } of watched.slice(0, 2)) await run()
    expect([...new Set(left)]).toEqual(['1 closed', '1 removed', '2 closed', '2 removed'])
  })

  it('rejects where the store breaks the promise, and removes the store all the same', async () => {
    let removed = 0
    const broken = contract.contractOf.ledger(
      () => ({
        open: () => ({ ...memoryLedger(), head: async () => undefined }),
        remove: () => void removed++,
      }),
      inMemory,
    )
    await expect(broken[0]?.run()).rejects.toThrow(
      /^Not so: the first append makes the run and answers its head\.\n/,
    )
    expect(removed).toBe(1)
  })
})

describe('contractOf.model', () => {
  const wire = {
    model: () => testkit.scriptedModel([]),
    contentType: 'text/event-stream',
    reply: () => ({ events: [] }),
    refusal: () => '',
    toolNames: () => [],
  }
  const promises = (cases: readonly { readonly promise: string }[]) => cases.map(({ promise }) => promise)

  it('has a case for each promise, but for those that need what the wire lacks', () => {
    const { contractOf, httpHarness, modelContract } = contract
    expect(promises(contractOf.model(httpHarness(wire)))).toEqual(promises(modelContract))
    const lacks = ['reasoning', 'names'] as const
    const left = modelContract.filter(({ needs }) => needs === undefined || needs === 'connection')
    expect(left.length).toBeLessThan(modelContract.length)
    expect(promises(contractOf.model(httpHarness({ ...wire, lacks })))).toEqual(promises(left))
  })

  it('rejects where the adapter breaks the promise', async () => {
    const [first] = contract.contractOf.model(contract.httpHarness(wire))
    await expect(first?.run()).rejects.toThrow('Not so: ')
  })
})

it('@tallystick/core/testing hands on every name of the doubles and the contracts', () => {
  expect(Object.keys(handedOn).toSorted()).toEqual(
    [...Object.keys(testkit), ...Object.keys(contract)].toSorted(),
  )
})
