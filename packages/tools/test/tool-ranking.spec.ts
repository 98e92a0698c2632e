import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hostileTexts } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { findTools, readWords } from '../src/toolkit/searchable-tools.ts'

const tool = (name: string, description = '', inputs: readonly string[] = []) => ({
  name,
  description,
  inputSchema: { type: 'object', properties: Object.fromEntries(inputs.map((input) => [input, {}])) },
})

const indexTools = (tools: Parameters<typeof findTools>[0]) => ({
  find: (query: string) => findTools(tools, query),
})

const office = [
  tool('mcp__github__create_issue', 'Opens a new issue in a repository.', ['repo', 'title', 'body']),
  tool('mcp__github__list_issues', 'Lists the issues of a repository.', ['repo', 'state']),
  tool('mcp__github__merge_pull_request', 'Merges a pull request.', ['repo', 'number']),
  tool('mcp__slack__post_message', 'Posts a message to a channel.', ['channel', 'text']),
  tool('mcp__slack__list_channels', 'Lists the channels of a workspace.'),
  tool('mcp__mail__send', 'Sends an email to one or more people.', ['to', 'subject', 'body']),
  tool('mcp__mail__search', 'Searches the mailbox, for messages about a subject.', ['query']),
  tool('getWeather', 'Tells the weather of a city for the next days.', ['city']),
  tool('sql_query', 'Runs one statement that reads the database.', ['sql']),
  tool('cafe_orders', 'Bestellungen im Café: alle offenen Posten.'),
]
const index = indexTools(office)

/** BM25 as a textbook has it, over the words of each tool; a beginning counts half where no tool has the word. */
function textbookScores(
  tools: readonly Readonly<Record<'name' | 'description' | 'inputs', readonly string[]>>[],
  query: readonly string[],
): ReadonlyMap<string, number> {
  const [k, b] = [1.2, 0.75]
  const times = (words: readonly string[], word: string) => words.filter((each) => each === word).length
  const frequency = ({ name, description, inputs }: (typeof tools)[number], word: string) =>
    3 * times(name, word) + times(description, word) + times(inputs, word) / 2
  const length = ({ name, description, inputs }: (typeof tools)[number]) =>
    3 * name.length + description.length + inputs.length / 2
  const mean = tools.map(length).reduce((sum, each) => sum + each) / tools.length
  const known = new Set(
    tools.flatMap(({ name, description, inputs }) => [...name, ...description, ...inputs]),
  )
  const share = (word: string) =>
    query.includes(word)
      ? 1
      : query.some((asked) => !known.has(asked) && (asked.startsWith(word) || word.startsWith(asked)))
        ? 0.5
        : 0
  const score = (each: (typeof tools)[number]) =>
    [...known]
      .map((word) => {
        const having = tools.filter((other) => frequency(other, word) > 0).length
        const rarity = Math.log(1 + (tools.length - having + 0.5) / (having + 0.5))
        const f = frequency(each, word)
        return (share(word) * rarity * f * (k + 1)) / (f + k * (1 - b + (b * length(each)) / mean))
      })
      .reduce((sum, part) => sum + part)
  return new Map(tools.map((each) => [each.name.join('_'), score(each)]))
}

describe('words of which no tool has all', () => {
  it('count half as much where they only begin a word, and a word that is there counts whole', () => {
    const both = indexTools([tool('lamp'), tool('chair')])
    expect(both.find('lamp lamps chair')).toEqual(['lamp', 'chair'])
    const halves = indexTools([tool('lamp', 'house'), tool('other', 'garden window')])
    expect(halves.find('house gard windo')).toEqual(['lamp', 'other'])
    expect(
      indexTools([tool('one', 'lamp'), tool('other', 'garden window river')]).find('lamp gard windo rive'),
    ).toEqual(['other', 'one'])
  })
})

describe('the words of a text', () => {
  it.each<[string, readonly string[]]>([
    ['getWeatherForCity', ['get', 'weather', 'for', 'citi']],
    ['mcp__git-hub__list_2issues', ['mcp', 'git', 'hub', 'list', '2', 'issu']],
    ['creating creates created create', ['creat', 'creat', 'creat', 'creat']],
    ['replies reply replying', ['repli', 'repli', 'repli']],
    ['searches search', ['search', 'search']],
    ['Café ÉTÉ', ['caf', 'ete']],
    ['is red bed bus', ['is', 'red', 'bed', 'bus']],
    ['v2Api', ['v', '2', 'api']],
    ['  ,;-- ', []],
    [`${'x '.repeat(2_000)}last`, Array.from({ length: 2_000 }, () => 'x')],
  ])('%j', (text, words) => {
    expect(readWords(text)).toEqual(words)
  })
})

describe('a search over tools', () => {
  it.each<[string, string]>([
    ['open an issue', 'mcp__github__create_issue'],
    ['which issues are there', 'mcp__github__list_issues'],
    ['merge PR pull request', 'mcp__github__merge_pull_request'],
    ['send email', 'mcp__mail__send'],
    ['slack message', 'mcp__slack__post_message'],
    ['weather in Paris', 'getWeather'],
    ['query the database', 'sql_query'],
    ['cafe', 'cafe_orders'],
    ['city', 'getWeather'],
  ])('%j finds %s first', (query, name) => {
    expect(index.find(query)[0]).toBe(name)
  })

  it('puts the tool with exactly that name first, whatever else fits', () => {
    const many = indexTools([
      tool('send_mail', 'send send send'),
      tool('Send', 'Other.'),
      tool('resend', 'send'),
    ])
    expect(many.find(' send ')).toEqual(['Send', 'send_mail', 'resend'])
    expect(many.find('SEND')).toEqual(['Send', 'send_mail', 'resend'])
  })

  it('knows a word by its beginning where no tool has it, and counts that less', () => {
    expect(index.find('workspa')[0]).toBe('mcp__slack__list_channels')
    const two = indexTools([tool('a', 'channel'), tool('b', 'channeling weather'), tool('c', 'weather')])
    expect(two.find('chann')).toEqual(['a', 'b'])
    expect(two.find('channelling')).toEqual(['a', 'b'])
    expect(indexTools([tool('a', 'weathervane'), tool('b', 'city')]).find('weather city')).toEqual(['b', 'a'])
    expect(two.find('we')).toEqual([])
    expect(two.find('wea')).toEqual(['c', 'b'])
    expect(indexTools([tool('a', 'at')]).find('atlas')).toEqual([])
  })

  it('counts a name more than a description, that more than an input, and a rare word more than a common one', () => {
    const fields = indexTools([tool('x', 'y', ['log']), tool('y', 'log'), tool('log', 'z'), tool('z', 'x')])
    expect(fields.find('a log')).toEqual(['log', 'y', 'x'])
    const rare = indexTools([
      tool('a', 'log file'),
      tool('b', 'log file'),
      tool('c', 'log'),
      tool('d', 'disk'),
    ])
    expect(rare.find('log disk')[0]).toBe('d')
  })

  it('counts a word less in a long text, and more words of a query more', () => {
    const long = indexTools([tool('a', `log ${'and more '.repeat(40)}`), tool('b', 'log')])
    expect(long.find('log')).toEqual(['b', 'a'])
    const words = indexTools([tool('a', 'log'), tool('b', 'disk log'), tool('c', 'disk')])
    expect(words.find('disk log')[0]).toBe('b')
  })

  it('keeps the order of the tools among equals, and finds nothing without a word that fits', () => {
    expect(indexTools([tool('b', 'log'), tool('a', 'log')]).find('log')).toEqual(['b', 'a'])
    expect(index.find('astronomy')).toEqual([])
    expect(index.find('')).toEqual([])
    expect(indexTools([]).find('log')).toEqual([])
  })

  it('ranks by BM25, with a name worth three times a description and an input half of it', () => {
    const word = fc.constantFrom('lamp', 'lampart', 'lampion', 'door', 'wall', 'wallpost')
    const texts = fc.record({
      name: fc.array(word, { maxLength: 2 }),
      description: fc.array(word, { maxLength: 12 }),
      inputs: fc.uniqueArray(word, { maxLength: 3 }),
    })
    fc.assert(
      fc.property(
        fc.array(texts, { minLength: 2, maxLength: 6 }),
        fc.array(word, { minLength: 1, maxLength: 3 }),
        (given, query) => {
          const named = given.map((each, at) => ({
            ...each,
            name: [`n${'abcdef'.charAt(at)}`, ...each.name],
          }))
          const ranked = indexTools(
            named.map(({ name, description, inputs }) => tool(name.join('_'), description.join(' '), inputs)),
          ).find(query.join(' '))
          const scores = textbookScores(named, query)
          const found = ranked.map((name) => scores.get(name) ?? 0)
          expect(ranked).toHaveLength([...scores.values()].filter((score) => score > 0).length)
          for (const [at, score] of found.slice(1).entries())
            expect(score).toBeLessThanOrEqual((found[at] ?? 0) + 1e-9)
        },
      ),
      { numRuns: tries(1_500) },
    )
  })

  it('finds each tool by its name and by its description, whatever they say', () => {
    const someText = fc.constantFrom(...hostileTexts.map(({ text }) => text.slice(0, 300)))
    fc.assert(
      fc.property(fc.array(fc.tuple(someText, someText), { minLength: 1, maxLength: 8 }), (texts) => {
        const tools = texts.map(([name, description], at) => tool(`${at}${name}`, description))
        const made = indexTools(tools)
        for (const { name, description } of tools) {
          expect(made.find(name)).toContain(name)
          expect(made.find(description).includes(name)).toBe(readWords(description).length > 0)
        }
      }),
      { numRuns: tries(60) },
    )
  })
})
