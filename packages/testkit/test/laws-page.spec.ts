// Failures link to docs/laws.md: every law and promise that they name is there, in the same words.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { policyPromises } from '../src/contract/policy-contract.ts'
import { effectPromises, endsAlways } from '../src/properties/play-agent.ts'
import { toolPromises } from '../src/properties/watched-tools.ts'
import { lawWords, linkLaw, type Subject } from '../src/report/laws.ts'

const page = readFileSync(join(import.meta.dirname, '../../../docs/laws.md'), 'utf8').replaceAll(/\s+/g, ' ')
const inWords = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1)

it.each(Object.entries(lawWords))('law %s is on the page, in its section', (law, words) => {
  const start = words.startsWith('seq') ? words : inWords(words)
  expect(page).toContain(`## Law ${law} **${start}.**`)
})

it.each(Object.values({ ...toolPromises, ...effectPromises, ...policyPromises, endsAlways }))(
  'the promise is on the page: %s',
  (promise) => {
    expect(page).toContain(`- ${inWords(promise)}`)
  },
)

it('each link leads to a section', () => {
  const subjects: readonly Subject[] = ['tool', 'ledger', 'model', 'policy', 'agent']
  const anchors = [...subjects, ...Object.keys(lawWords).map(Number)].map(
    (of) => linkLaw(of).split('#')[1] ?? '',
  )
  const sections = [...page.matchAll(/## ((?:Law|A|An) \w+)/g)].map(([, title = '']) =>
    title.toLowerCase().replaceAll(' ', '-'),
  )
  expect(sections.toSorted()).toEqual(anchors.toSorted())
})
