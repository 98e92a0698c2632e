import { hostileTexts } from '@tallystick/testkit'
import { httpFetch } from '@tallystick/tools/http-fetch'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import { toMarkdown } from '../../src/built-in/http-fetch/markdown.ts'
import { endingOf } from '../one-call.ts'
import { loopbackServer } from './loopback-server.ts'

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
    ...['math', 'canvas', 'iframe', 'object', 'select', 'textarea', 'audio', 'video', 'datalist'].map(
      (name): [string, string, string] => [`nothing of ${name}`, `a<${name}>x</${name}>b`, 'ab'],
    ),
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
    const server = await loopbackServer((_request, response) => {
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
