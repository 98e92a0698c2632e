// Pages as Markdown, one trait a page: what may be beside what, and where lines begin and end.
import { describe, expect, it } from 'vitest'
import { resolveLink, toMarkdown } from '../../src/built-in/http-fetch/markdown.ts'

const base = 'https://a.example/dir/'
const link = '[a](https://a.example/dir/y)'

describe('blocks of a page', () => {
  it.each([
    ['a<div>b</div>c<section>d</section>', 'a\nb\nc\nd'],
    ['<p>a</p> <p> b </p>\n c', 'a\n\nb\n\nc'],
    ['<dl><dt>a<dd>b</dl>', 'a\nb'],
    ['x <br><br> y<hr>', 'x\ny\n\n---'],
    ['<h1> a</h1>', '# a'],
    ['<h2><a href=y><h3>a</h3></a></h2>', `## ${link}`],
    ['a<DIV HIDDEN>x</DIV><DIV>b</DIV>', 'a\nb'],
    ['a<b style="visibility : hidden">b</b>c', 'ac'],
    ['<blockquote>a</blockquote><blockquote>b</blockquote>', '> a\n\n> b'],
    [`${'<blockquote>'.repeat(14)}x`, `${'> '.repeat(12)}x`],
  ])('%j', (html, shown) => {
    expect(toMarkdown(html, base, 1_000).markdown).toBe(shown)
  })
})

describe('an element that is a block', () => {
  it.each(['p', 'dl', 'figure', 'form', 'address', 'details', 'table'])(
    '%s has empty lines around it',
    (name) => {
      expect(toMarkdown(`a<${name}>b</${name}>c`, base, 99).markdown).toBe('a\n\nb\n\nc')
    },
  )

  it.each([
    ...['div', 'section', 'article', 'main', 'header', 'footer', 'nav', 'aside', 'dt', 'dd', 'figcaption'],
    ...['fieldset', 'legend', 'summary', 'caption', 'center', 'hgroup', 'search', 'menu'],
  ])('%s is on lines of its own', (name) => {
    expect(toMarkdown(`a<${name}>b</${name}>c`, base, 99).markdown).toBe('a\nb\nc')
  })

  it.each([
    ...['script', 'style', 'noscript', 'template', 'svg', 'math', 'canvas', 'iframe', 'object', 'select'],
    ...['textarea', 'audio', 'video', 'datalist'],
  ])('%s is not seen', (name) => {
    expect(toMarkdown(`a<${name}>b</${name}>c`, base, 99).markdown).toBe('ac')
  })
})

describe('lists of a page', () => {
  it.each([
    ['<li>a', '- a'],
    ['<a href="y"><li>a</li></a>', link],
    ['x<li>a', 'x\n- a'],
    ['<ul><li>a</li>b</ul>', '- a\nb'],
    ['<ul><li>a</ul><ul><li>b</ul>', '- a\n\n- b'],
    ['<ol><li>a<ul><li>b</ul><li>c</ol>d', '1. a\n   - b\n2. c\n\nd'],
    ['<ul><li>a<ol><li>b<ul><li>c</ul></ol></ul>', '- a\n  1. b\n     - c'],
    ['<ol><li><ol><li>a</ol></ol>', '   1. a'],
    ['<ol start=x><li>a</ol>', '1. a'],
    ['<ol start=123456><li>a</ol>', '123456. a'],
    ['<ol start=1234567><li>a</ol>', '1. a'],
    ['<ul><li># a<li>- b', '- \\# a\n- \\- b'],
  ])('%j', (html, shown) => {
    expect(toMarkdown(html, base, 1_000).markdown).toBe(shown)
  })
})

describe('tables of a page', () => {
  const head = '| a |\n| --- |'
  it.each([
    ['<table><td>a</td></table>', '| a |'],
    ['<table><tr><th> a </th><th>b</th></tr></table>', '| a | b |\n| --- | --- |'],
    ['<table><tr><td>a<tr><td>b<tr><td>c</table>', `${head}\n| b |\n| c |`],
    ['<table><tr></tr><tr><td>a</td></tr></table>', head],
    ['<table>x<tr><td>a</table>', `x\n${head}`],
    ['<table><tr><td>a</td></tr>b</table>c', `${head}\nb\n\nc`],
    ['<table><tr><td><a href="y">a</a></table>', head],
    ['<table><td><pre>a\nb</pre></table>', '| `a b` |'],
    ['<table><tr><td><h2>a</h2><ul><li>b<li>c</ul></table>', '| a b c |\n| --- |'],
    ['<table><tr><td>a<table><tr><td>b<td>c</table></table>', '| a b c |\n| --- |'],
    [
      '<table><tr><td>a</td></tr><table><tr><td>b</td></tr></table><tr><td>c</td></tr></table>d',
      `${head}\n\n| b |\n| --- |\n\n| c |\n\nd`,
    ],
    ['<table></table><td>x</td>y<tr>z', 'x\ny\nz'],
  ])('%j', (html, shown) => {
    expect(toMarkdown(html, base, 1_000).markdown).toBe(shown)
  })
})

describe('text of a page', () => {
  it.each([
    ['a|b', 'a|b'],
    ['# a', '\\# a'],
    ['a<b>1. c</b>', 'a**1. c**'],
    ['1) a<br>+ b<br>= c<br>~ d<br>> e', '\\1) a\n\\+ b\n\\= c\n\\~ d\n\\> e'],
    ['123456789. a<br>1234567890. b', '\\123456789. a\n1234567890. b'],
    ['a <img alt=b><img alt=c> <img alt=d>', 'a bc d'],
    ['a <code>b</code><code>c</code>', 'a `b``c`'],
    ['a<code> b\n c </code><code> </code>d', 'a`b c`d'],
    ['<code>`a</code> <code>a`</code>', '`` `a `` `` a` ``'],
    ['<pre>a</pre>', '```\na\n```'],
    ['x<pre>\n\na<br>b<b>c</b>\n\n</pre>', 'x\n\n```\n\na\nbc\n```'],
    ['<b>a <i>b</i></b>', '**a *b***'],
    ['<var>a</var> <cite>b</cite> <dfn>c</dfn> <em>d</em>', '*a* *b* *c* *d*'],
    ['<strong>e</strong> <del>f</del> <strike>g</strike>', '**e** ~~f~~ ~~g~~'],
    ['a<a href="x"></a><b></b>b', 'ab'],
    ['<base><a href="y">a</a>', link],
    ['<base href="javascript:x"><a href="y"> a </a>', link],
  ])('%j', (html, shown) => {
    expect(toMarkdown(html, base, 1_000).markdown).toBe(shown)
  })
})

describe('the end of a page', () => {
  it('is where it has as much as it may, or is too deep', () => {
    expect(toMarkdown('abc', base, 3)).toStrictEqual({ markdown: 'abc', more: true })
    expect(toMarkdown('abc', base, 4)).toStrictEqual({ markdown: 'abc', more: false })
    expect(toMarkdown(`${'<div>'.repeat(500)}x`, base, 9)).toEqual({ markdown: 'x', more: false })
    expect(toMarkdown(`${'<div>'.repeat(501)}x`, base, 9)).toEqual({ markdown: '', more: true })
  })

  it('does not change its title, which has 300 characters at most', () => {
    expect(toMarkdown('<title> </title>a', base, 9)).toStrictEqual({ markdown: 'a', more: false })
    const titled = (length: number) => toMarkdown(`<title>${'t'.repeat(length)}`, base, 9).title
    expect([titled(300), titled(301)]).toEqual(['t'.repeat(300), 't'.repeat(300)])
  })
})

describe('the target of a link', () => {
  const long = (length: number): string => `http://a.example/${'x'.repeat(length - 17)}`
  it.each([
    [undefined, undefined],
    ['//', undefined],
    ['ftp://a.example', undefined],
    ['http://b.example', 'http://b.example/'],
    ['mailto:ada@a.example', 'mailto:ada@a.example'],
    ['(y)', 'https://a.example/dir/%28y%29'],
    [long(2_000), long(2_000)],
    [long(2_001), undefined],
    // It grows when it is made whole.
    ['x'.repeat(1_978), `https://a.example/dir/${'x'.repeat(1_978)}`],
    ['x'.repeat(1_979), undefined],
    [`http://a.example/x${'/../x'.repeat(400)}`, undefined],
  ])('%j', (href, target) => {
    expect(resolveLink(href, base)).toBe(target)
  })
})
