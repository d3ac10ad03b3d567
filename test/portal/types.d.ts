// What the portal knows of the API: the types that openapi-typescript makes from
// config/openapi/openapi.yaml, by the path that a page calls.

import type { components, paths } from 'openapi';

type Bare<P extends string> = P extends `${infer Path}?${string}` ? Path : P;
type Split<P extends string> = P extends `${infer Segment}/${infer Rest}` ? [Segment, ...Split<Rest>] : [P];

/** Whether the segments of a path are those of a documented one. */
type Fits<S extends string[], D extends string[]> =
  S extends [infer A, ...infer As extends string[]]
    ? D extends [infer B, ...infer Bs extends string[]]
      ? B extends `{${string}}` ? Fits<As, Bs> : A extends B ? Fits<As, Bs> : false
      : false
    : D extends [] ? true : false;

type Matching<S extends string[]> = { [D in keyof paths]: Fits<S, Split<D>> extends true ? D : never }[keyof paths];

type In<M extends string, R> = R extends keyof paths ? (paths[R] extends Record<Lowercase<M>, infer O> ? O : never) : never;

/** What the document has of a method and a path, such as /api/orgs/{org} of `/api/orgs/${string}`. */
type Operation<M extends string, P extends string> =
  P extends string ? ([In<M, Bare<P>>] extends [never] ? In<M, Matching<Split<Bare<P>>>> : In<M, Bare<P>>) : never;

/** The names of the parameters in the query of a path, and those that the document has. */
type Names<Q> = Q extends `${infer A}&${infer B}` ? Names<A> | Names<B> : Q extends `${infer N}=${string}` ? N : never;
type Asked<P extends string> = P extends `${string}?${infer Q}` ? Names<Q> : never;
type Offered<O> = O extends { parameters: { query?: infer Q } } ? keyof Q : never;

// People use the portal, not bots. A kubeconfig is text.
type Content<C> = C extends { 'application/yaml': unknown } ? any : C extends { 'application/json': infer B } ? Exclude<B, { kind: 'Bot' }> : null;
type Success<O> = O extends { responses: infer R }
  ? { [S in keyof R & (200 | 201 | 202 | 204)]: R[S] extends { content?: infer C } ? Content<C> : null }[keyof R & (200 | 201 | 202 | 204)]
  : never;

/** Whether nothing is known of a path: it is a variable, or begins with one. */
type Unknown<P extends string> = [P] extends [`/${string}`] ? false : true;

declare global {
  /** A schema of the API by its name. */
  type Schema<N extends keyof components['schemas']> = components['schemas'][N];

  type OrgPath = `/api/orgs/${string}`;
  type WorkspacePath = `${OrgPath}/workspaces/${string}`;
  type BotPath = `${WorkspacePath}/serviceaccounts/${string}`;
  type ProviderPath = `${WorkspacePath}/providers/${string}`;
  type CatalogPath = `${OrgPath}/catalog` | '/api/admin/catalog';
  type MemberPath = `${OrgPath | WorkspacePath}/${`members/${string}` | 'memberships/me'}`;

  type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

  /**
   * The method itself if the API has the path with it, and the parameters of its query. A path of
   * which nothing is known passes.
   */
  type Documented<M extends string, P extends string> = Unknown<P> extends true ? M
    : [Operation<M, P>] extends [never] ? never : [Asked<P>] extends [Offered<Operation<M, P>>] ? M : never;

  /** The body of the answers that are a success. */
  type Answer<M extends string, P extends string> = Unknown<P> extends true ? any : Success<Operation<M, P>>;

  /** The body of a request. */
  type Sent<M extends string, P extends string> = Unknown<P> extends true ? any
    : Operation<M, P> extends { requestBody?: { content: { 'application/json': infer B } } } ? B : undefined;

  /** The path itself if the API has it as a list of which a page at a time can be read. */
  type Paged<P extends string> = Unknown<P> extends true ? P
    : ['limit' | 'continue' | Asked<P>] extends [Offered<Operation<'GET', P>>] ? P : never;

  /** What a list has. */
  type Item<P extends string> = Unknown<P> extends true ? any : Answer<'GET', P> extends { items: Array<infer I> } ? I : never;
}
