/**
 * Returns the content security policy of the page: it runs the script and the style that are in it, and loads nothing from
 * elsewhere, whatever text of a run becomes part of it by mistake. `connect` is where it may send requests.
 */
export async function createPagePolicy(page: string, connect: "'self'" | "'none'"): Promise<string> {
  return [
    "default-src 'none'",
    `script-src ${await hashAll(page, 'script')}`,
    `style-src ${await hashAll(page, 'style')}`,
    `connect-src ${connect}`,
    'img-src data: blob:',
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
}

/** The hashes of what stands between the tags of a name. */
async function hashAll(page: string, tag: 'script' | 'style'): Promise<string> {
  const texts = [...page.matchAll(new RegExp(`<${tag}\\b[^>]*>(.*?)</${tag}>`, 'gs'))]
  const hashes = await Promise.all(
    texts.map(async ([, text = '']) => {
      const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
      return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`
    }),
  )
  return hashes.length === 0 ? "'none'" : hashes.join(' ')
}
