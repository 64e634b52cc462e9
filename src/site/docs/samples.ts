/** How to ask for an address in three languages, each whole enough to be pasted; the key is in the environment. */
export function samplesOf(url: string, list: string): { name: string; text: string }[] {
  return [
    { name: "curl", text: `curl -H "X-Api-Key: $ROUNDHOUSE_KEY" "${url}"` },
    {
      name: "JavaScript",
      text: `const { env } = process;
const response = await fetch("${url}", { headers: { "X-Api-Key": env.ROUNDHOUSE_KEY } });
const answer = await response.json();
if (!answer.ok) throw new Error(\`\${answer.error.code}: \${answer.error.message}\`);
console.log(answer.${list});`,
    },
    {
      name: "Python",
      text: `import json, os
from urllib.request import Request, urlopen

request = Request("${url}", headers={"X-Api-Key": os.environ["ROUNDHOUSE_KEY"]})
with urlopen(request, timeout=10) as response:  # raises HTTPError where it is no 200
    answer = json.load(response)
print(answer["${list}"])`,
    },
  ];
}
