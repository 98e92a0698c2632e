import { describe, expect, it } from 'vitest'
import { findNamedSecrets } from '../src/secrets.ts'

/** The texts that count as secrets. */
const found = (text: string): readonly string[] =>
  findNamedSecrets(text).map(({ start, end }) => text.slice(start, end))
const wholly = (text: string): unknown => findNamedSecrets(text)

describe('a value after the name of a secret', () => {
  it.each<readonly [string, ...string[]]>([
    // Assignments.
    ['password=hunter2', 'hunter2'],
    ['password = hunter2', 'hunter2'],
    ['password =hunter2', 'hunter2'],
    ['password\t= \thunter2', 'hunter2'],
    ['password := hunter2', 'hunter2'],
    ['password:=hunter2', 'hunter2'],
    ['password => hunter2', 'hunter2'],
    ['password=>hunter2', 'hunter2'],
    ['password=a', 'a'],
    ['token=read()', 'read()'],
    ['token = read()'],
    ['token= read()'],
    ['token =read()'],
    ['token = read;(x)', 'read'],
    ['token = read('],
    ['token=a&secret=b;apikey=c,cookie=d e', 'a', 'b', 'c', 'd'],
    ['token='],
    ['token = '],
    ['token=\nnext'],
    ["token=a'b", 'a'],
    ['token=a"b', 'a'],
    ['token=a\\nb', 'a'],
    ['token=a\rb', 'a'],
    ['a=1 token=b c=2 secret=d', 'b', 'd'],
    ['=hunter2'],
    [' = hunter2'],
    // Settings.
    ['password: hunter2 and more', 'hunter2'],
    ['password : hunter2', 'hunter2'],
    ['password:\thunter2', 'hunter2'],
    ['password: four', 'four'],
    ['password: thr'],
    ['password:hunter2'],
    ['password::hunter2'],
    ['password:: hunter2'],
    ['db.password: hunter2', 'hunter2'],
    ['token: something'],
    ['api_token: something', 'something'],
    ['password: \nhunter2'],
    ['password:'],
    ['password: '],
    ['user: hunter2'],
    ['line\\npassword: hunter2\\nmore', 'hunter2'],
    ['line\\\\npassword: hunter2', 'hunter2'],
    // After a backslash: a line break of a JSON text, or a path of Windows.
    ['line\\ntoken: something'],
    ['line\\nPRIMARY_KEY=1'],
    ['line\\nOPENAI_KEY=hunter2', 'hunter2'],
    ['C:\\password=hunter2', 'hunter2'],
    ['C:\\keys\\token=hunter2', 'hunter2'],
    ['C:\\\\token=hunter2', 'hunter2'],
    ['C:\\my_pass: hunter2', 'hunter2'],
    ['C:\\user=hunter2'],
    // Headers, of which the rest of the line counts.
    ['Authorization: Digest a="b"', 'Digest a='],
    ['authorization:Digest abc', 'Digest abc'],
    ['Proxy-Authorization: Digest abc\nHost: x', 'Digest abc'],
    ['Cookie: a=1; b=2, c\r\nHost: x', 'a=1; b=2, c'],
    ["Set-Cookie: a=1; b=2'", 'a=1; b=2'],
    ['set-cookie: a=1\\r\\n', 'a=1'],
    ['Cookie = a=1; b=2', 'a=1'],
    ['my-cookie: a=12; b=2', 'a=12'],
    ['cookies: a=1'],
    // Texts between quotes.
    ['password="two words"', 'two words'],
    ["password: 'two words' more", 'two words'],
    ['password="it\'s"', "it's"],
    ['password=\'say "no"\'', 'say "no"'],
    ['password:"a"', 'a'],
    ['password=""'],
    ['password="" token="b"', 'b'],
    ['password="never closed', 'never closed'],
    ['password="a\\"b" c', 'a\\"b'],
    ['password="a\\\\" b', 'a\\\\'],
    ['password="a\\\\\\"b" c', 'a\\\\\\"b'],
    ['password="\\" b', '\\" b'],
    // In JSON, and in JSON within JSON.
    ['{"password":"a","token":"b"}', 'a', 'b'],
    ['{"password" :\n "a"}', 'a'],
    ['{"password"\r\n:\t"a"}', 'a'],
    ['{"password":a}'],
    ['{"password":true,"token":"b"}', 'b'],
    ['{"password": 12, "token": -1.5e+3}', '12', '-1.5e+3'],
    ['{"password": 1-2}'],
    ['{"password": }'],
    ['{"password":{"token":"b"}}', 'b'],
    ['{\\"password\\":\\"a\\",\\"b\\":\\"c\\"}', 'a'],
    ['{\\"password\\": \\"a\\\\\\"b\\"}', 'a\\\\\\"b'],
    ['{\\"password\\":\\"a\\\\\\\\\\"}', 'a\\\\\\\\'],
    ['{\\\\\\"password\\\\\\":\\\\\\"a\\\\\\"}', 'a'],
    ['{\\"password\\":\\"a"b\\"}', 'a"b'],
    ["{'password':'a'}", 'a'],
    ['{"user password":"a"}', 'a'],
    ['{"password hint":"a"}'],
    ['"":"a"'],
    // Lists in JSON.
    ['{"password":["a","b"]}', 'a', 'b'],
    ['{"password":[1,"b",[2,["c"]],3],"d":"e"}', '1', 'b', '2', 'c', '3'],
    ['{"password":[true,null,false,"b"]}', 'b'],
    ['{"password":[ "a" ,\n"b" ],"c":["d"]}', 'a', 'b'],
    ['{"password":["a",{"user":"b"},"c"]}', 'a'],
    ['{"password":["a",{"token":"b"}]}', 'a', 'b'],
    ['{\\"password\\":[\\"a\\",\\"b c\\",1],\\"d\\":\\"e\\"}', 'a', 'b c', '1'],
    ['{"password":["","a"]}', 'a'],
    ['{"password":["a"', 'a'],
    ['{"password":[]}'],
    ['{"password":[],"token":"b"}', 'b'],
    ['{"password":[["a"]],"user":["b"]}', 'a'],
    ['password=["a"]', '['],
  ])('is a secret in %j', (text, ...secrets) => {
    expect(found(text)).toEqual(secrets)
  })

  it('is a number of JSON, or a text at a depth of nesting, where it says so', () => {
    expect(wholly('{"password":12}')).toEqual([{ start: 12, end: 14, isNumber: true }])
    expect(wholly('{"token":"a"}')).toEqual([{ start: 10, end: 11, nested: 0 }])
    expect(wholly(String.raw`{\"token\":\"a\"}`)).toEqual([{ start: 13, end: 14, nested: 1 }])
    expect(wholly('token=a')).toEqual([{ start: 6, end: 7 }])
  })

  it('is read once, whatever names it holds itself', () => {
    expect(found('{"password":"token=a secret=b"} token=c')).toEqual(['token=a secret=b', 'c'])
    expect(found('Cookie: token=a; secret=b')).toEqual(['token=a; secret=b'])
  })
})
