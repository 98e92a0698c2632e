import { expect, it } from 'vitest'
import { findVersionFault } from '../src/version.ts'

it.each(['22.14.0', '22.20.1', '23.0.0', '24.11.0', '100.0.0'])('runs on Node %s', (node) => {
  expect(findVersionFault({ node })).toBeUndefined()
})

it.each(['22.13.0', '22.9.0', '20.20.2', '18.0.0'])('says on Node %s which it needs', (node) => {
  expect(findVersionFault({ node })).toContain(`needs Node 22.14 or newer, and this is Node ${node}`)
})

it('lets other hosts try', () => {
  expect(findVersionFault({ node: '20.0.0', deno: '2.1.0' })).toBeUndefined()
  expect(findVersionFault({ node: '20.0.0', bun: '1.3.0' })).toBeUndefined()
})
