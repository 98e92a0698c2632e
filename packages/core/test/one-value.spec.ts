import { describe, expect, it } from 'vitest'
import { oneValue } from '../src/values/observables.ts'

describe('a source of one value', () => {
  it('reports it and completes, to each subscriber', () => {
    const seen: unknown[] = []
    const source = oneValue('x')
    for (const name of ['first', 'second']) {
      source.subscribe({ next: (value) => seen.push([name, value]), complete: () => seen.push([name]) })
    }
    expect(seen).toEqual([['first', 'x'], ['first'], ['second', 'x'], ['second']])
  })
})
