import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { VERSION } from "../../src/version.ts";

const FOLDER = join(import.meta.dirname, "../../deploy/kubernetes");
const objects = readdirSync(FOLDER).flatMap((file) =>
  parseAllDocuments(readFileSync(join(FOLDER, file), "utf8")).map((document): unknown => document.toJS()),
);
const named = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
});
type Model = new (data: object) => { validate(): void };
const pods = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({
        containers: z.array(
          z.looseObject({
            image: z.string(),
            securityContext: z.looseObject({}),
            env: z.array(z.looseObject({ name: z.string(), value: z.string().default("") })).default([]),
          }),
        ),
        volumes: z.array(
          z.looseObject({
            secret: z.looseObject({ items: z.array(z.looseObject({ path: z.string() })).default([]) }).optional(),
          }),
        ),
      }),
    }),
  }),
});
const podSpecs = objects.flatMap((object) => {
  const pod = pods.safeParse(object);
  return pod.success ? [pod.data.spec.template.spec] : [];
});
const containers = podSpecs.flatMap((spec) => spec.containers);

/** Checks an object against Kubernetes' schema of its kind. @throws the schema's error. */
async function validate(object: unknown): Promise<void> {
  const { apiVersion, kind } = named.parse(object);
  const module = (await import(`kubernetes-models/${apiVersion}/${kind}`)) as Record<string, Model>;
  const model = module[kind];
  if (model === undefined) throw new Error(`expected a schema of ${apiVersion} ${kind}, found none`);
  new model(object as object).validate();
}

describe("the manifests of Kubernetes", () => {
  it.each(
    objects.map((object) => ({ object, title: `${named.parse(object).kind} ${named.parse(object).metadata.name}` })),
  )("$title fits the schema of its kind", async ({ object }) => {
    await expect(validate(object)).resolves.toBeUndefined();
  });

  it("would not fit with a wrong type", async () => {
    const api = objects.find((object) => named.parse(object).kind === "Deployment");
    const wrong = { ...(api as object), spec: { replicas: "two" } };
    await expect(validate(wrong)).rejects.toThrow("data/spec/replicas must be integer");
  });

  it("run the image of this version, on a read-only file system, without rights", () => {
    expect(containers).toHaveLength(3);
    for (const { image, securityContext } of containers) {
      expect(image).toBe(`roundhouse:${VERSION}`);
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    }
  });

  it("give AUTH_SECRET and the one before it to what sends mails, whose links are encrypted with them", () => {
    const mailing = containers
      .map(({ env }) => env.map(({ name }) => name))
      .filter((env) => env.includes("SMTP_URL_FILE"));
    expect(mailing).toHaveLength(2);
    for (const env of mailing)
      expect(env).toEqual(expect.arrayContaining(["AUTH_SECRET_FILE", "AUTH_SECRET_PREVIOUS_FILE"]));
  });

  it("mount exactly the files that the settings name, all of which deploy/secrets.sh makes", () => {
    const script = readFileSync(join(FOLDER, "../secrets.sh"), "utf8");
    const folder = "/run/secrets/roundhouse/";
    for (const { containers: own, volumes } of podSpecs) {
      const mounted = volumes.flatMap(({ secret }) => secret?.items ?? []).map(({ path }) => path);
      const files = own.flatMap(({ env }) => env.filter(({ value }) => value.startsWith(folder)));
      expect(files.map(({ value }) => value.slice(folder.length)).toSorted()).toEqual(mounted.toSorted());
      for (const name of mounted) expect(script).toMatch(new RegExp(`\\b${name}\\b`));
    }
  });
});
