# options: {'force_break_at': 20}
def f(a, b, c, t, u):
    global G, N, D, T
    w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o)
    if (list(range(3)) + G):
        n1 = 0
        while n1 < 2 and len(LOG) < 60:
            n1 += 1
            o = q; o.x = (a in G)
            if isinstance(int(t[0]), P):
                continue
        with M(True):
            try:
                def fn2(p=d['a'], *args, key=1):
                    global G, N, D, T
                    nonlocal w, z, n, m, x, l, d, v, o, q
                    q = P(t.dim())
                    return n
                G.append(fn2())
                w = lambda: w
                z = (t - t.mean())
            except Exception as error:
                n = error.__context__ is None
                N = sum(list(range(3))[1:])
                o = P(sum(i for i in list(range(3))), (o + -1))
                z = dict(w=w, n=n)
            t = torch.stack([t, t])
            N = (o.p < t.dim())
        N = sum([i for i in G])
    else:
        w = sorted(list(range(3)), key=lambda i: str(i))
        w = ((t > int(t[0])),)
    n += (2 + 1)
    LOG.append(t.requires_grad)
    return o, q, u, w
