import { hostileTexts } from '@tallystick/testkit'
import { ToolError } from '@tallystick/tools'
import { httpFetch } from '@tallystick/tools/http-fetch'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import {
  decodePage,
  defaultContentTypes,
  isPage,
  isShown,
  readPageType,
  readBytes,
  describeFailure,
} from '../../src/built-in/http-fetch/exchange.ts'
import { toMarkdown } from '../../src/built-in/http-fetch/markdown.ts'
import { endingOf } from '../one-call.ts'
import { serve } from './loopback-server.ts'

const base = 'https://a.example/dir/'
const markdown = (html: string): string => toMarkdown(html, base, 10_000).markdown

describe('a page as Markdown', () => {
  it.each<[string, string, string]>([
    [
      'headings and paragraphs',
      '<h1>A <em>b</em></h1><p>One\n two<p>three<h3>c</h3>d',
      '# A *b*\n\nOne two\n\nthree\n\n### c\n\nd',
    ],
    ['emphasis beside words', 'a<b> b </b>c <i></i>d <s>e</s>', 'a **b** c d ~~e~~'],
    [
      'links made whole',
      '<a href="../x(1)">see <b>it</b></a> <a href="#">top</a>',
      '[see **it**](https://a.example/x%281%29) [top](https://a.example/dir/#)',
    ],
    [
      'addresses that are no pages as text',
      '<a href="javascript:f()">a</a> <a href="data:text/html,x">b</a><img src="data:x" alt="c">',
      'a bc',
    ],
    ['a link around blocks on one line', '<a href="/"><h2>a</h2><p>b</p></a>', '[a b](https://a.example/)'],
    ['a base', '<base href="https://b.example/q/"><a href="x">a</a>', '[a](https://b.example/q/x)'],
    [
      'pictures with words',
      '<img src="p.png" alt="a [b]"><img src="p.png">',
      '![a b](https://a.example/dir/p.png)',
    ],
    [
      'lists in lists',
      '<ul><li>a<li>b<ol start=9><li>c<li><p>d</p><p>e</p></ol><li></ul>f',
      '- a\n- b\n  9. c\n\n  10. d\n\n      e\n\nf',
    ],
    ['quotes', 'a<blockquote>b<blockquote>c</blockquote></blockquote>d', 'a\n\n> b\n>\n> > c\n\nd'],
    ['code', '<code>a ` b</code> <kbd>c</kbd>', '``a ` b`` `c`'],
    [
      'code with its lines',
      'x<pre><code>\na  b\n  ```\n<br>c</code></pre>y',
      'x\n\n````\na  b\n  ```\n\nc\n````\n\ny',
    ],
    [
      'tables',
      '<table><tr><th>a<th>b<tr><td>1|2<td><p>x</p><ul><li>y</ul><tr><td><td>z</table>',
      '| a | b |\n| --- | --- |\n| 1\\|2 | x y |\n|  | z |',
    ],
    ['breaks and rules', 'a<br>b<hr>c', 'a\nb\n\n---\n\nc'],
    [
      'text that looks like Markdown',
      '<p># a<p>- b<p>1. c<p>*d* [e](f) `g` &lt;h> \\',
      '\\# a\n\n\\- b\n\n\\1. c\n\n\\*d\\* \\[e\\](f) \\`g\\` \\<h> \\\\',
    ],
    ['entities', '&amp;amp; &eacute;&#x1F600;&nbsp;&bogus;', '&amp; é😀 &bogus;'],
    [
      'nothing that no reader sees',
      'a<!-- x --><script>"</p>"</script><style>y</style><template>z</template><p hidden>h</p>' +
        '<div style="DISPLAY : none">i<p>j</div><span aria-hidden=true>k</span><noscript>l</noscript>b',
      'ab',
    ],
    ['broken markup', '<p>a<b>b<i>c</b>d</i></p></div>e<', 'a**b*c***d\n\ne\\<'],
    ['no page at all', 'just text', 'just text'],
  ])('shows %s', (_what, html, shown) => {
    expect(markdown(html)).toBe(shown)
  })

  it('has a title, on one line', () => {
    expect(toMarkdown('<head><title>\n A  &amp; b</title></head>c<title>d</title>', base, 99)).toEqual({
      title: 'A & b',
      markdown: 'c',
      more: false,
    })
  })

  it('is cut at its length, and where it is nested without measure', () => {
    expect(toMarkdown('<p>a'.repeat(1_000), base, 10)).toEqual({
      markdown: 'a\n\na\n\na\n\na',
      more: true,
    })
    for (const tag of ['<div>', '<ul><li>', '<blockquote>', '<b>']) {
      expect(toMarkdown(`${tag.repeat(100_000)}x`, base, 1_000)).toMatchObject({ more: true })
    }
    const deep = markdown(`${'<blockquote>'.repeat(400)}x`)
    expect([deep.endsWith('x'), deep.length < 100]).toEqual([true, true])
  })

  it('can be made of any text, and is never longer than asked', () => {
    const tags = fc.constantFrom(
      ...[
        '<p>',
        '</p>',
        '<a href="x">',
        '</a>',
        '<table>',
        '<tr>',
        '<td>',
        '</table>',
        '<ul>',
        '<li>',
        '</ul>',
      ],
      ...[
        '<pre>',
        '</pre>',
        '<code>',
        '</code>',
        '<b>',
        '</b>',
        '<blockquote>',
        '</blockquote>',
        '<h2>',
        '<!--',
      ],
      ...[
        '<script>',
        '</script>',
        '<title>',
        '</title>',
        '<svg>',
        '<![CDATA[',
        '<a',
        '&#',
        ' hidden',
        '"',
        '`',
        '|',
      ],
    )
    const pages = fc.array(fc.oneof(tags, fc.string({ maxLength: 5 })), { maxLength: 60 })
    fc.assert(
      fc.property(pages, fc.integer({ min: 1, max: 200 }), (parts, length) => {
        const page = toMarkdown(parts.join(''), base, length)
        expect(page.markdown.length).toBeLessThanOrEqual(length)
        expect(page.markdown).not.toMatch(/\n{3}/)
      }),
      { numRuns: tries(300) },
    )
    for (const { text } of hostileTexts) expect(() => markdown(text)).not.toThrow()
  })
})

describe('a page that is fetched', () => {
  async function fetched(
    body: string | Buffer,
    options: { type?: string; raw?: boolean; maxBytes?: number; authorization?: string } = {},
  ): Promise<Record<string, unknown>> {
    const {
      type = 'text/html; charset=utf-8',
      raw,
      maxBytes,
      authorization = 'Bearer key-of-eight',
    } = options
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': type }).end(body)
    })
    onTestFinished(() => server.close())
    const input = { url: `${server.origin}/dir/page`, ...(raw !== undefined && { raw }) }
    const headers = { [server.origin]: { authorization } }
    const tool = httpFetch({ allow: [server.place], headers, maxBytes })
    const { text } = await endingOf(tool, input)
    return JSON.parse(text) as Record<string, unknown>
  }
  const page = '<title>Lamps</title><p>Two <a href="more">lamps</a>.'

  it('is shown as Markdown with its title, and as its source where that is asked for', async () => {
    const shown = await fetched(page)
    expect(shown).toMatchObject({ status: 200, title: 'Lamps' })
    expect(shown['body']).toMatch(/^Two \[lamps\]\(http:\/\/127\.0\.0\.1:\d+\/dir\/more\)\.$/)
    expect(await fetched(page, { raw: true })).toMatchObject({ body: page })
    expect(await fetched(page, { type: 'text/plain' })).toMatchObject({ body: page })
    expect(await fetched(page, { type: 'application/xhtml+xml' })).toMatchObject({ title: 'Lamps' })
  })

  it('is read in the character set that it names itself', async () => {
    const latin = Buffer.from('<meta charset="iso-8859-1"><p>caf\u00e9', 'latin1')
    expect(await fetched(latin, { type: 'text/html' })).toMatchObject({ body: 'café' })
  })

  it.each([
    ['that is only in its text', '<title>a</title>set charset=iso-8859-1 '],
    ['that only a text after its meta element says', '<meta name=a><p>set =iso-8859-1 '],
    ['that is far into the page', `${' '.repeat(1_024)}<meta charset=iso-8859-1>`],
  ])('is not read in a character set %s', async (_where, head) => {
    const { body } = await fetched(`${head}é`, { type: 'text/html' })
    expect(body).toMatch(/é$/)
  })

  it('is cut after the Markdown that may be shown, however long its source is', async () => {
    const long = `<style>${'x'.repeat(100_000)}</style>${'<p>ü</p>'.repeat(50_000)}`
    const { body, note } = await fetched(long, { maxBytes: 1_000 })
    expect(Buffer.byteLength(String(body))).toBeLessThanOrEqual(1_000)
    expect(String(body).startsWith('ü\n\nü')).toBe(true)
    expect(note).toBe('The body is cut after 1000 bytes. Ask for a smaller part if it can be had.')
    const endless = `<!--${'x'.repeat(3_000_000)}-->end`
    expect(await fetched(endless)).toMatchObject({ body: '', note: expect.stringContaining('cut') as string })
  })

  it('hides a key that only its Markdown holds', async () => {
    const { body, title } = await fetched('<title>key-of-&#101;ight</title><p>key-<b></b>of-<i></i>eight')
    expect([body, title].join()).not.toContain('key-of-eight')
    const authorization = 'Bearer k*y[of]eight'
    const { body: escaped } = await fetched('<p>it is k*y[of]eight', { authorization })
    expect(String(escaped)).toMatch(/^it is [\\*]+$/)
  })
})

// How the body of an answer is read: which types are shown, in which character set, and how much of it.

describe('a media type', () => {
  it.each([
    ['text/csv', true],
    ['TEXT/Plain ; charset=utf-8', true],
    ['application/json', true],
    ['application/problem+json', true],
    ['application/x-ndjson', true],
    ['application/xml', true],
    ['image/svg+xml', false],
    ['application/atom+xml', true],
    ['application/yaml', true],
    ['application/jsonx', false],
    ['application/pdf', false],
    ['', false],
    [null, true],
  ])('%j is shown: %j', (type, shown) => {
    expect(isShown(type, defaultContentTypes)).toBe(shown)
  })

  it.each([
    ['text/html; charset=utf-8', true],
    ['application/xhtml+xml', true],
    ['text/plain', false],
    [null, false],
  ])('%j is that of a page: %j', (type, page) => {
    expect(isPage(type)).toBe(page)
  })
})

describe('the character set of a page', () => {
  const typeOf = (page: string, type: string | null = 'text/html') => readPageType(Buffer.from(page), type)
  it.each([
    ['<META CHARSET="Latin1">', 'text/html; charset=latin1'],
    ["<meta http-equiv=x content='text/html; charset = l1'>", 'text/html; charset=l1'],
    ['<meta charset=one><meta charset=two>', 'text/html; charset=one'],
    ['charset=one<meta charset=two>', 'text/html; charset=two'],
    ['<meta name=a>', 'text/html'],
    [`${' '.repeat(1_004)}<meta charset=latin1>`, 'text/html; charset=latin1'],
    [`${' '.repeat(1_005)}<meta charset=latin1>`, 'text/html; charset=latin'],
  ])('that %j names', (page, type) => {
    expect(typeOf(page)).toBe(type)
  })

  it('is that of its server, where it names one', () => {
    expect(typeOf('<meta charset=latin1>', 'text/html; Charset=utf-8')).toBe('text/html; Charset=utf-8')
    expect(typeOf('<meta charset=latin1>', null)).toBe('; charset=latin1')
    expect(typeOf('', null)).toBe('')
  })
})

describe('a text', () => {
  it.each([
    ['text/plain; charset=iso-8859-1', 'é'],
    ['text/plain; charset="iso-8859-1"', 'é'],
    ['text/plain; charset=unknown', '\ufffd'],
    ['text/plain', '\ufffd'],
    [null, '\ufffd'],
  ])('of type %j is decoded', (type, text) => {
    expect(decodePage(Uint8Array.from([0xe9]), type)).toBe(text)
  })
})

describe('the bytes of a body', () => {
  /** Reads so many bytes of a body of three pieces, and says how many of them were asked for. */
  async function reading(maxBytes: number) {
    let given = 0
    const pieces = async function* () {
      for (const piece of ['ab', 'cd', 'ef']) {
        given++
        yield Buffer.from(piece)
      }
    }
    const { bytes, more } = await readBytes({ body: pieces() } as never, maxBytes)
    return [bytes.toString(), more, given]
  }

  it('are read as far as is asked for', async () => {
    expect(await reading(6)).toEqual(['abcdef', false, 3])
    expect(await reading(5)).toEqual(['abcde', true, 3])
    expect(await reading(3)).toEqual(['abc', true, 2])
    expect(await reading(1)).toEqual(['a', true, 1])
    expect(await readBytes({ body: null } as never, 5)).toEqual({ bytes: Buffer.alloc(0), more: false })
  })
})

const coded = (code: unknown, cause?: unknown) => Object.assign(new Error('secret', { cause }), { code })
/** An error within so many others. */
const within = (depth: number, error: Error): Error =>
  depth === 0 ? error : within(depth - 1, new TypeError('fetch failed', { cause: error }))
const cyclic = new Error('secret')
cyclic.cause = cyclic

describe('a failed request', () => {
  it.each<[unknown, string]>([
    [coded('ECONNREFUSED'), 'the server refused the connection (ECONNREFUSED)'],
    [coded('ECONNRESET'), 'the server closed the connection (ECONNRESET)'],
    [coded('EAI_AGAIN'), 'the name of the host cannot be looked up now (EAI_AGAIN)'],
    [coded('EHOSTUNREACH'), 'there is no way to the host (EHOSTUNREACH)'],
    [coded('ENETUNREACH'), 'there is no way to the host (ENETUNREACH)'],
    [coded('ENOTFOUND'), 'there is no host of that name (ENOTFOUND)'],
    [coded('ETIMEDOUT'), 'the server did not answer the connection (ETIMEDOUT)'],
    [coded('UND_ERR_CONNECT_TIMEOUT'), 'the server did not answer the connection (UND_ERR_CONNECT_TIMEOUT)'],
    [coded('UND_ERR_HEADERS_OVERFLOW'), 'the headers of the answer are too large (UND_ERR_HEADERS_OVERFLOW)'],
    [coded('UND_ERR_SOCKET'), 'the server closed the connection (UND_ERR_SOCKET)'],
    ...['CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_X', 'ERR_SSL_X'].map(
      (code): [unknown, string] => [coded(code), `the connection cannot be trusted (${code})`],
    ),
    [coded('EODD'), 'the request failed (EODD)'],
    [coded('a secret'), 'the request failed'],
    [coded(7), 'the request failed'],
    [coded('a secret', coded('ECONNRESET')), 'the server closed the connection (ECONNRESET)'],
    [coded('ENOTFOUND', coded('ECONNRESET')), 'there is no host of that name (ENOTFOUND)'],
    [within(7, coded('ECONNRESET')), 'the server closed the connection (ECONNRESET)'],
    [within(8, coded('ECONNRESET')), 'the request failed'],
    [
      new AggregateError([coded('ECONNREFUSED'), coded('ENOTFOUND')]),
      'the server refused the connection (ECONNREFUSED)',
    ],
    [
      new AggregateError([], 'secret', { cause: coded('ENOTFOUND') }),
      'there is no host of that name (ENOTFOUND)',
    ],
    [cyclic, 'the request failed'],
    ['a secret', 'the request failed'],
    [undefined, 'the request failed'],
  ])('of %s is named by its code, and by nothing that a library says', (thrown, reason) => {
    expect(describeFailure(thrown, (text) => text)).toMatchObject({
      ...{ name: 'ToolError', message: `There is no answer: ${reason}.`, outcome: 'failed' },
    })
  })

  it('of a port that no client connects to names the port', () => {
    expect(describeFailure(within(1, new Error('bad port')), (text) => text).message).toMatch(
      /^The port of that URL/,
    )
  })

  it('that a rule refused is named in the outermost words of ours, with its outcome, and masked', () => {
    const inner = new ToolError('inner')
    const refused = Object.assign(new ToolError('No entry for swordfish', { outcome: 'timed_out' }), {
      cause: inner,
    })
    const failure = describeFailure(within(1, refused), (text) => text.replace('swordfish', '***'))
    expect(failure).toBeInstanceOf(ToolError)
    expect(failure).toMatchObject({ message: 'No entry for ***', outcome: 'timed_out' })
  })
})
