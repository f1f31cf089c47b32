# options: {'force_break_at': 44}
def f(a, b, c, t, u):
    global G, N, D, T
    w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o)
    try:
        try:
            if hasattr(q, 'y'):
                for N in d.items():
                    turn1 = 0
                    if len(LOG) > 60:
                        break
                    match t[1:]:
                        case {'a': x1}:
                            u['n'] = 2.5
                            v = t.view(-1)
                            n = l.pop()
                        case _:
                            d.update(D)
                            w = (q + 1); w.y = w
                    n = o.m(t.dim(), 1, key=2).x
                    (n, w), z = list({-1, a}), D['a']
                q.x = len(q)
                pass
        except Exception as error:
            z = error
            if not (int(t[0]) % 3):
                o = o
                (n, w), z = list(range(3)), (1 + t.shape[0])
                v = (t + m)
            else:
                t[0] = bool(t.dim())
                x = '%s' % (list({N, 2.5}),)
        else:
            G.sort(key=str)
            pass
        G = getattr(P(int(t[0])), 'y', 5)
        z = w()
    finally:
        w = G; z = w
    n = (n := 0)
    x = ','.join(map(str, list(u)))
    l = G
    w = sorted(list(u.items()), key=lambda i: str(i))
    return [w, z, n, m, x, l, d, v, o, q, t, u, c]
