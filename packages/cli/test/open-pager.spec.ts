import { expect, it } from 'vitest'
import { openPager } from '../src/terminal/pager.ts'

it.each([
  ['names none', { PAGER: '' }],
  ['names blanks', { PAGER: ' ' }],
  ['names cat', { PAGER: 'cat' }],
  ['names none, and has no less', { PATH: '/no/such/folder' }],
  ['is empty', {}],
])('no pager is started where the environment %s', (_, environment) => {
  expect(openPager(environment, (text) => text)).toBeUndefined()
})
